"""The built-in training job, small but with everything that a checkpoint must restore."""
