"""The trial runner: it launches attempts on the nodes of an arena, injects their faults, and journals what happens."""
