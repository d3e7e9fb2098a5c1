"""What is known of a command by its signs alone, without running it. Pure."""
