"""The workload: a little training job, real in everything that a checkpoint has to bring back."""
