"""A command's process tree as its node sees it: the ranks in it, what they are doing, and its end."""

from __future__ import annotations
