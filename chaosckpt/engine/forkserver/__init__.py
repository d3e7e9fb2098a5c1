"""The fork server: a warm, single-threaded process that forks ranks in milliseconds."""
