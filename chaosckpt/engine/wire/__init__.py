"""What the processes of one trial say to one another."""
