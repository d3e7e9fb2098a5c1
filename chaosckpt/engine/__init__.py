"""The engine: runs golden runs and trials, on nodes that launch ranks under the gate.

Its packages follow its processes: `runner` drives a trial, `node` and `forkserver` run on each node, `rank` is what a rank runs, and
`wire` is what they say to one another. `subjects` alone knows whether a target or a command is tested."""
