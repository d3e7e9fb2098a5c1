"""Campaigns on Ray: nodes as actors, their placement, and the clean-up of a local cluster. Only this package imports Ray."""
