"""Mutation at rest: what a node does to the files of a tier while no rank runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from chaosckpt.engine.wire import storage
from chaosckpt.model.file_names import printable, text_of
from chaosckpt.model.mutation import CutOff, FlipBit, Mutated, Mutation, Plant, ReverseTimes
from chaosckpt.model.phrasing import plural

SECOND_NS = 10**9


def mutate(tier: str, root: Path, mutation: Mutation, decode: Callable[[str], str]) -> list[Mutated]:
    """Carry it out below `root`, the tier's directory; what was done, nothing where there was nothing to do it to.

    `decode` takes the nonces out of a path `tier:relative`. Raises HarnessError where the directory above isn't marked as ours.
    """
    storage.require_mark(root)
    match mutation:
        case FlipBit() | CutOff():
            found = [path for path in _files(root) if decode(_name(tier, root, path)) == mutation.path]
            return [done for path in found if (done := _damage(tier, root, path, mutation)) is not None]
        case ReverseTimes():
            return _reverse_times(tier, root)
        case Plant():
            return _plant(tier, root, mutation)


def _name(tier: str, root: Path, path: Path) -> str:
    return f"{tier}:{printable(text_of(os.fsencode(path.relative_to(root))))}"


def _files(root: Path) -> list[Path]:
    """Every regular file below, in the order of names."""
    return sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())


def _damage(tier: str, root: Path, path: Path, damage: FlipBit | CutOff) -> Mutated | None:
    size = path.stat().st_size
    if not size:
        return None
    times = path.stat()
    if isinstance(damage, CutOff):
        missing = min(damage.missing_bytes, size)
        os.truncate(path, size - missing)
        what = f"the last {missing} of {plural(size, 'byte')} were cut off"
    else:
        offset = damage.offset % size
        with open(path, "r+b") as stream:
            stream.seek(offset)
            value = stream.read(1)[0]
            stream.seek(offset)
            stream.write(bytes([value ^ (1 << damage.bit)]))
        what = f"bit {damage.bit} of byte {offset} was flipped"
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # a medium that decays doesn't tell
    return Mutated(_name(tier, root, path), what)


def _reverse_times(tier: str, root: Path) -> list[Mutated]:
    paths = [path for path in root.rglob("*") if not path.is_symlink()]
    ordered = sorted(paths, key=lambda path: (path.lstat().st_mtime_ns, str(path)))
    if len(ordered) < 2:
        return []
    newest = ordered[-1].lstat().st_mtime_ns
    for age, path in enumerate(ordered):
        os.utime(path, ns=(newest - age * SECOND_NS, newest - age * SECOND_NS))
    return [
        Mutated(
            f"{tier}:.", f"the modification times of {len(ordered)} files and directories were put in reverse order"
        )
    ]


def _plant(tier: str, root: Path, plant: Plant) -> list[Mutated]:
    found = []
    for name in plant.directories:
        path = root / name.partition(":")[2]
        if not path.exists():
            path.mkdir(parents=True)
            found.append(Mutated(_name(tier, root, path), "a directory as an interrupted run leaves it was planted"))
    for name in plant.files:
        path = root / name.partition(":")[2]
        if path.parent.is_dir() and not path.exists():
            path.touch()
            found.append(Mutated(_name(tier, root, path), "an empty file as an interrupted run leaves it was planted"))
    return found
