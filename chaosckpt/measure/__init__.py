"""What checkpoints cost: stall, completion, restart, space and contention, and the interval at which to save.

Nothing here runs under the gate, and no fault is injected."""
