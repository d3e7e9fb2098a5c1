"""Storage directories of a campaign: made, marked and emptied by the harness, and nobody else's."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from chaosckpt.engine.wire.process_tree import started
from chaosckpt.errors import HarnessError, UsageError
from chaosckpt.model.file_names import text_of
from chaosckpt.model.phrasing import plural

MARK = ".chaosckpt-storage"
PREFIX = "chaosckpt-storage-"
_FULL_BYTES = 1 << 20
_SHARE_OF_FREE = 16
"""A copy takes at most this part of the free space."""


class Owner(msgspec.Struct, frozen=True):
    """Who made a storage directory: a process of this machine, told from a later one of the same number by when it began.

    `numbers` names the space that its number belongs to: containers of one machine, and of one host name, count for themselves.
    """

    pid: int
    began: str
    host: str
    numbers: str = ""
    note: str = "Made by chaosckpt, which empties and removes this directory. Keep nothing here."


def make(path: Path) -> Path:
    """Make a new directory with the harness's mark in it; tiers go below. Raises FileExistsError when it is there already."""
    path.mkdir(parents=True)
    return _mark(path)


def _mark(path: Path) -> Path:
    owner = Owner(os.getpid(), started(os.getpid()), os.uname().nodename, _numbers())
    (path / MARK).write_bytes(msgspec.json.encode(owner) + b"\n")
    return path


def make_below(base: str | None) -> Path:
    """A new marked directory below `base` (default: the temporary directory). Raises UsageError where none can be made.

    What a killed harness left there before is removed first.
    """
    parent = Path(base) if base is not None else Path(tempfile.gettempdir())
    if not parent.is_dir():
        raise UsageError(f"the storage directory {parent} does not exist; create it, or name another one in [storage]")
    sweep(parent)
    try:
        return _mark(Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)))
    except OSError as error:
        raise UsageError(
            f"chaosckpt can't create a directory in {parent}: {error.strerror}; name another directory in [storage]"
        ) from error


def sweep(parent: Path) -> list[Path]:
    """Remove storage directories that a dead harness of this machine left below `parent`; returns which."""
    removed = []
    for path in sorted(parent.glob(PREFIX + "*")):
        try:
            owner = msgspec.json.decode((path / MARK).read_bytes(), type=Owner)
        except (OSError, msgspec.DecodeError):
            continue
        here = (os.uname().nodename, _numbers())
        if (owner.host, owner.numbers) == here and started(owner.pid) != owner.began:
            with contextlib.suppress(OSError):  # another harness may sweep it at the same time
                remove(path)
            removed.append(path)
    return removed


def _numbers() -> str:
    """The process number namespace of this process, as in `pid:[4026531836]`; empty where there is no telling."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def empty(tier: Path) -> int:
    """Delete what a tier's directory holds and leave it empty; returns how many files that were.

    The directory above must carry the mark. Raises HarnessError where it doesn't.
    """
    require_mark(tier)
    files = sum(len(names) for _, _, names in os.walk(tier))
    clear(tier)
    tier.mkdir()
    return files


def clear(path: Path) -> None:
    """Delete whatever a job left at this path, be it a directory that nobody may enter, a link, a file or nothing."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(path)
    except PermissionError:
        _unlock(path)
        shutil.rmtree(path)


def _unlock(directory: str | Path) -> None:
    """Give back what a job took from itself: the right to list and change its directories."""
    os.chmod(directory, 0o700)
    for entry in os.scandir(directory):
        if entry.is_dir(follow_symlinks=False):
            _unlock(entry.path)


def keep(copies: Mapping[Path, Path]) -> bool:
    """Copy the directory of each tier as it is now, each to the path beside it, which is replaced.

    False, and nothing is kept, where the copies would take much of what the file system has free, or can't be made.
    """
    discard(copies.values())
    try:
        for tier, copy in copies.items():
            require_mark(tier)
            size = sum(os.lstat(path).st_size for _, path in files("", str(tier)))
            if size > shutil.disk_usage(tier.parent).free // _SHARE_OF_FREE:
                break
            if os.path.isdir(tier):  # a job may have removed its root, and be about to make it again
                shutil.copytree(tier, copy, symlinks=True)
            else:
                copy.mkdir()
        else:
            return True
    except OSError:  # shutil.Error is one, too
        pass
    discard(copies.values())
    return False


def exchange(copies: Mapping[Path, Path]) -> None:
    """Let what the directory of each tier holds and what the copy beside it holds change places.

    The directories stay the same, for whoever has one of them open, or in a cache of a network file system.
    """
    for tier, copy in copies.items():
        require_mark(tier)
        aside = copy.with_name(copy.name + ".aside")
        aside.mkdir()
        tier.mkdir(exist_ok=True)
        for source, target in ((tier, aside), (copy, tier), (aside, copy)):
            for name in os.listdir(source):
                os.rename(source / name, target / name)
        aside.rmdir()


def discard(copies: Iterable[Path]) -> None:
    """Remove copies that `keep` made; one that isn't there is fine."""
    for copy in copies:
        require_mark(copy)
        clear(copy)


def require_mark(tier: Path) -> None:
    """Raise HarnessError where the directory above a tier's doesn't carry the mark, so that its content isn't ours."""
    if not (tier.parent / MARK).is_file():
        raise HarnessError(
            f"{tier} is not in a directory that chaosckpt created ({tier.parent / MARK} is missing); nothing was deleted"
        )


def files(tier: str, directory: str) -> Iterator[tuple[str, str]]:
    """(`tier:relative`, path) of every file below a tier's directory."""
    for base, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(base, name)
            yield f"{tier}:{text_of(os.fsencode(os.path.relpath(path, directory)))}", path


def manifest(tier: str, directory: str) -> Iterator[tuple[str, int, str]]:
    """(`tier:relative`, bytes, digest of the content) of every file below a tier's directory; a link's content is where it leads."""
    for shown, path in files(tier, directory):
        yield shown, *content(path)


def content(path: str) -> tuple[int, str]:
    """(bytes, digest of the content) of a file or link. What holds none, or can't be read, has a word in its place."""
    if os.path.islink(path):
        target = os.readlink(path).encode(errors="surrogateescape")
        return len(target), "link:" + hashlib.blake2b(target, digest_size=16).hexdigest()
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        return 0, "special"  # a pipe would never end
    if not os.access(path, os.R_OK):
        return status.st_size, "unreadable"
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        return os.fstat(file.fileno()).st_size, digest


def shortage(path: Path) -> str:
    """In words, that the file system of this path is full; empty where it isn't."""
    free = shutil.disk_usage(path).free
    return f"; only {plural(free, 'byte')} are free in {path}" if free < _FULL_BYTES else ""


def remove(path: Path) -> None:
    """Delete a directory that `make` made; without its mark it is left alone, and one that is gone already is fine."""
    if (path / MARK).is_file():
        _clear(path)
        (path / MARK).unlink(missing_ok=True)
        path.rmdir()


def _clear(path: Path) -> None:
    """Delete all but the mark: whoever is killed here leaves a directory that the next one still knows."""
    for child in path.iterdir():
        if child.name == MARK:
            continue
        clear(child)
