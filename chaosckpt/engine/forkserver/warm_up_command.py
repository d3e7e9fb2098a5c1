"""Warming up for a script: its own imports, as a run of it has shown them, and nothing of the harness's."""

from __future__ import annotations

import os

from chaosckpt.engine.forkserver.imports import import_all
from chaosckpt.engine.wire.forks import Ready
from chaosckpt.engine.wire.orders import NodeSettings, TargetFacts
from chaosckpt.model.guarantee import Guarantee

PROMISES: tuple[Guarantee, ...] = ("process-crash",)
"""What is asked of a script of which nothing is known: that a crash doesn't cost what it saved before."""


def up(settings: NodeSettings) -> Ready:
    """Import what the script imports. The process must end up with one thread for scripts to be forked from it."""
    own = tuple(
        name for name in settings.modules if name.partition(".")[0] not in ("chaosckpt", "__main__", "__mp_main__")
    )
    import_all(own)
    facts = TargetFacts(name="command", guarantees=PROMISES)
    return Ready(facts, settings.modules, len(os.listdir("/proc/self/task")))
