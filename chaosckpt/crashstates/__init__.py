"""From an operation trace to the contents of storage that a crash may leave."""
