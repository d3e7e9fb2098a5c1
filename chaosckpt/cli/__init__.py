"""The command line: one file a command, errors as one sentence, and nothing heavy imported before it is needed."""
