"""Formats of what is stored on disk, as numbers: a version of chaosckpt reads its own and refuses every other in a sentence.

Format 2 (chaosckpt 0.2) has other names for invariants, events and faults' evidence than format 1; CHANGELOG.md has the table.
"""

from __future__ import annotations

RUN = 2
"""Run directories, their journals and findings, and cached censuses: they hold each other's values, so they change together."""


def refusal(what: str, found: int, known: int, next_step: str) -> str:
    """The sentence for a stored thing of another format than the one that this version reads."""
    author = "a newer version of chaosckpt wrote it" if found > known else "an older version of chaosckpt wrote it"
    return f"{what} has format {found}, and this version reads format {known}: {author}; {next_step}"
