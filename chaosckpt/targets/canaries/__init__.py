"""Targets with one deliberate bug each: the proof that the oracle can catch it."""
