"""The storage of a recorded run, put back to what it was after some operation, or after one operation after another."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from chaosckpt.commands.naming import FileSeen
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.command_arena import out_of
from chaosckpt.engine.wire.storage import content, files
from chaosckpt.gate.replay import stepwise
from chaosckpt.model.file_names import bytes_of
from chaosckpt.model.operation import Operation


def rewind(arena: Arena, operations: Sequence[Operation], tracked: int) -> None:
    """Empty the arena's tiers and apply these operations, which keep their data, to them.

    What they did in the `tracked` directories beside these is done in a place that is thrown away, because files may be moved in
    from there; the directories themselves stay as the last run left them.
    """
    for _ in rewound(arena, operations, tracked):
        pass


def rewound(arena: Arena, operations: Sequence[Operation], tracked: int) -> Iterator[Operation]:
    """The same, operation by operation: yields each when it is applied, or left out."""
    arena.reset()
    beside = [f"track{number}" for number in range(tracked)]
    roots = {tier: Path(path) for tier, path in arena.tiers(0).items()}
    with tempfile.TemporaryDirectory(dir=arena.directory) as place:
        for tier in beside:
            roots[tier] = Path(place) / tier
            roots[tier].mkdir()
        yield from stepwise(_performable(operations, beside, Path(place)), roots)


def _performable(operations: Sequence[Operation], beside: Collection[str], place: Path) -> Iterator[Operation]:
    """The operations, those on what lay in a tracked directory before as failed ones: nobody knows what that was."""
    made: set[str] = set()
    for operation in operations:
        op, raw, to = operation.address.op, operation.raw, operation.destination or ""
        within, into = _tier(raw) in beside, op in ("rename", "link") and _tier(to) in beside
        makes = op in ("mkdir", "symlink") or (op == "open_write" and bool(operation.flags & os.O_CREAT))
        if within and raw not in made and not makes:
            yield msgspec.structs.replace(operation, result=-errno.ENOENT)
            continue
        for path in [raw] * (within and makes) + [to] * into:
            above = path.rpartition("/")[0]
            if above and above not in made:
                tier, _, relative = above.partition(":")
                (place / tier / os.fsdecode(bytes_of(relative))).mkdir(parents=True, exist_ok=True)
            made.add(path)
        if op == "rename" and within:
            made = {_moved(path, raw, to) for path in made}
        yield operation


def _moved(path: str, source: str, to: str) -> str:
    """Where a path is after the rename of `source`."""
    return to + path[len(source) :] if path == source or path.startswith(source + "/") else path


def _tier(path: str) -> str:
    return path.partition(":")[0]


class FilesInOut:
    """Every file below `{out}` while operations are put back one by one: only what they changed is read again.

    `decoded` reads the random parts of paths as `*`.
    """

    def __init__(self, arena: Arena, trace: Sequence[Operation], decoded: Callable[[str], str]) -> None:
        self._arena = arena
        self._decoded = decoded
        self._files: dict[str, FileSeen] = {}
        self._changed: set[str] = set()
        # What is written through one name of a file is in all of them.
        self._linked = any(operation.address.op == "link" for operation in trace)
        self._anew = self._linked

    def applied(self, operation: Operation) -> None:
        """Take note of an operation that has just been put back."""
        self._changed |= {path for path in (operation.raw, operation.destination) if path is not None}
        # A directory takes along what is in it.
        self._anew = self._anew or (
            operation.address.op == "rename" and os.path.isdir(self._path(operation.destination))
        )

    def now(self) -> list[FileSeen]:
        """The files as they are now."""
        if self._anew:
            self._anew = self._linked
            self._files = {raw: self._seen(raw, path) for raw, path in files("out", out_of(self._arena))}
        else:
            for raw in self._changed:
                path = self._path(raw)
                if raw.startswith("out:") and (os.path.islink(path) or os.path.isfile(path)):
                    self._files[raw] = self._seen(raw, path)
                else:
                    self._files.pop(raw, None)
        self._changed.clear()
        return sorted(self._files.values())

    def _seen(self, raw: str, path: str) -> FileSeen:
        size, digest = content(path)
        return self._decoded(raw), size, digest

    def _path(self, raw: str | None) -> str:
        return os.path.join(out_of(self._arena), os.fsdecode(bytes_of((raw or "").partition(":")[2])))
