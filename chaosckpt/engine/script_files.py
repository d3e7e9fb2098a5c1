"""What a command has left below `{out}`."""

from __future__ import annotations

from chaosckpt.engine.runner.command_arena import ScriptArena
from chaosckpt.model.checkpoints import FileSeen


def seen(arena: ScriptArena) -> tuple[FileSeen, ...]:
    """Every file below `{out}`."""
    return tuple(arena.nodes[0].manifest("out", str(arena.out)))
