"""What a command's files, output, launches and steps reveal: naming, completeness, random names, labels, trajectories. Pure."""
