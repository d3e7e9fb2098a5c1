"""Importing by name what another process was seen to import."""

from __future__ import annotations

import importlib
import sys


def import_all(modules: tuple[str, ...]) -> None:
    """Import these modules, in order; one that can't be imported by name alone was made by another, and is left out."""
    for name in modules:
        if name in sys.modules:
            continue
        try:
            importlib.import_module(name)
        except Exception:  # noqa: S112 - whatever a foreign module raises, a rank will meet it again, in its own life
            continue
