"""What a command has left below `{out}`."""

from __future__ import annotations

from chaosckpt.engine.script_arena import ScriptArena
from chaosckpt.model.checkpoints import FileSeen


def seen(arena: ScriptArena) -> tuple[FileSeen, ...]:
    """Every file below `{out}`."""
    found = arena.nodes[0].call("manifest", ["out", str(arena.out)])
    return tuple((str(path), int(size), str(digest)) for path, size, digest in found)
