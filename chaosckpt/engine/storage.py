"""Storage directories of a campaign: made, marked and emptied by the harness, and nobody else's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from chaosckpt.errors import HarnessError

MARK = ".chaosckpt-storage"
MARK_TEXT = "Made by chaosckpt, which empties and removes this directory. Keep nothing here.\n"


def make(path: Path) -> Path:
    """Make a new directory with the harness's mark in it; tiers go below. Raises FileExistsError when it is there already."""
    path.mkdir(parents=True)
    (path / MARK).write_text(MARK_TEXT)
    return path


def empty(tier: Path) -> int:
    """Delete what a tier's directory holds and leave it empty; returns how many files that were.

    The directory above must carry the mark. Raises HarnessError where it doesn't.
    """
    if not (tier.parent / MARK).is_file():
        raise HarnessError(f"{tier} is not below a directory marked by chaosckpt ({tier.parent / MARK} is missing); it is left alone")
    files = sum(len(names) for _, _, names in os.walk(tier))
    if tier.exists():
        shutil.rmtree(tier)
    tier.mkdir()
    return files


def remove(path: Path) -> None:
    """Delete a directory that `make` made; without its mark it is left alone, and one that is gone already is fine."""
    if (path / MARK).is_file():
        shutil.rmtree(path)
