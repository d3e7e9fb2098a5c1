"""The node process: it launches the ranks of one node, holds their operations, and answers the trial runner."""
