"""The fence around a command: what it may not change, whom it may not reach, and that a refusal is told."""
