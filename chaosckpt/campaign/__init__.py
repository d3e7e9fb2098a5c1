"""Campaigns: search, investigate violations, store findings, and reproduce them later.

The coordinator is a process of its own. Workers run one trial after another on arenas until the budget is spent; a
violation is confirmed, shrunk, grouped by its root cause and stored. A kill at any moment loses at most the running trials."""
