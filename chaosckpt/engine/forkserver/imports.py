"""Importing by name what another process was seen to import."""

from __future__ import annotations

import importlib
import os
import sys

from chaosckpt.commands.launches import OBSERVER
from chaosckpt.engine.wire.orders import NodeSettings, Ready, TargetFacts
from chaosckpt.model.guarantee import Guarantee

PROMISES: tuple[Guarantee, ...] = ("process-crash",)
"""What is asked of a command of which nothing is known: that a crash doesn't cost what it saved before."""


def import_all(modules: tuple[str, ...]) -> None:
    """Import these modules, in order; one that can't be imported by name alone was made by another, and is left out."""
    for name in modules:
        if name in sys.modules:
            continue
        try:
            importlib.import_module(name)
        except Exception:  # noqa: S112 - whatever a foreign module raises, a rank will meet it again, in its own life
            continue


def import_for_command(settings: NodeSettings) -> Ready:
    """Import what the command's script imports, as a run of it has shown, and of the harness only what observes it.

    The process must end up with one thread for scripts to be forked from it.
    """
    own = ("chaosckpt", "__main__", "__mp_main__")
    import_all(tuple(name for name in settings.modules if name.partition(".")[0] not in own))
    if settings.command is not None and settings.command.observed and "torch" in sys.modules:
        import_all((OBSERVER,))
    facts = TargetFacts(name="command", guarantees=PROMISES)
    return Ready(facts, settings.modules, len(os.listdir("/proc/self/task")))
