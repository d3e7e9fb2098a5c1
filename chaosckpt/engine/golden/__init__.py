"""Golden runs: census, reach, commit points, and what recovery finds after every operation, cached by content."""
