"""Golden runs: what a subject does without any fault, measured before a campaign: census, reach, commit points, recovery."""
