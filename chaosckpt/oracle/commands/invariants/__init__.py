"""What is asked of a command: one invariant a file, under the same name and in the same sense as for a target."""
