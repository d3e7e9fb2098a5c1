"""Launch and observe: the gate, the fork server, ranks, nodes and the trial runner."""
