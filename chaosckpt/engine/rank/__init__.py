"""The process of a rank, and the programs that it can run."""
