"""Shrinking: from a schedule that shows a violation to the simplest one that still does, a real trial for each candidate."""
