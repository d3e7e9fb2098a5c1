"""How the built-in targets lay out checkpoint directories (`step-000004`, one a step), and how they remove one."""

from __future__ import annotations

import re
from pathlib import Path

_STEP = re.compile(r"step-(\d{6,})")


def step_directory(root: Path, step: int) -> Path:
    """The directory of one step's checkpoint."""
    return root / f"step-{step:06d}"


def steps_in(root: Path) -> list[int]:
    """The steps that have a directory of that name under `root`, ascending; those with a suffix don't count."""
    matches = (_STEP.fullmatch(entry.name) for entry in root.iterdir())
    return sorted(int(match[1]) for match in matches if match)


def remove_tree(directory: Path) -> None:
    """Remove a directory and all in it, in the order of names: shutil.rmtree takes the order in which storage lists them."""
    for entry in sorted(directory.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            remove_tree(entry)
        else:
            entry.unlink()
    directory.rmdir()
