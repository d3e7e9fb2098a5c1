"""The trial runner: attempts on the nodes of an arena."""
