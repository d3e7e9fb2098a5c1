"""The programs that a rank can run: training, audit, reference, measuring, and a command's own code."""
