"""What a command's files, output and names reveal: naming, completeness, random names, labels. Pure."""
