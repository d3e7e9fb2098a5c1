"""What sees a rank of an unmodified script train, without a change to it and without printed lines."""
