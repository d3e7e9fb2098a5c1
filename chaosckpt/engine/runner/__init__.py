"""The trial runner's process: arenas, attempts, trials, audits and references, over the interface of a node."""
