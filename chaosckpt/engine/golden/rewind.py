"""Storage rewound to what it was after an operation of a golden run, without touching the directories that are the user's own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.gate.replay import replay
from chaosckpt.model.operation import Operation


def rewind(arena: Arena, operations: Sequence[Operation], tracked: int) -> None:
    """Empty the arena's tiers and apply these operations, which keep their data, to them.

    What they did in the `tracked` directories beside these is done in a place that is thrown away, because files may be moved in
    from there; the directories themselves stay as the last run left them.
    """
    arena.reset()
    beside = [f"track{number}" for number in range(tracked)]
    roots = {tier: Path(path) for tier, path in arena.tiers(0).items()}
    with tempfile.TemporaryDirectory(dir=arena.directory) as place:
        for tier in beside:
            roots[tier] = Path(place) / tier
            roots[tier].mkdir()
        kept = list(_performable(operations, beside, Path(place)))
        replay(kept, roots)


def _performable(operations: Sequence[Operation], beside: Collection[str], place: Path) -> Iterator[Operation]:
    """The operations without those on what lay in a tracked directory before: nobody knows what that was."""
    made: set[str] = set()
    for operation in operations:
        op, raw, to = operation.address.op, operation.raw, operation.destination or ""
        within, into = _tier(raw) in beside, op in ("rename", "link") and _tier(to) in beside
        makes = op in ("mkdir", "symlink") or (op == "open_write" and bool(operation.flags & os.O_CREAT))
        if within and raw not in made and not makes:
            continue
        for path in [raw] * (within and makes) + [to] * into:
            above = path.rpartition("/")[0]
            if above and above not in made:
                tier, _, relative = above.partition(":")
                (place / tier / relative).mkdir(parents=True, exist_ok=True)
            made.add(path)
        if op == "rename" and within:
            made = {_moved(path, raw, to) for path in made}
        yield operation


def _moved(path: str, source: str, to: str) -> str:
    """Where a path is after the rename of `source`."""
    return to + path[len(source) :] if path == source or path.startswith(source + "/") else path


def _tier(path: str) -> str:
    return path.partition(":")[0]
