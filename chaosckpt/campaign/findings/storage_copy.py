"""A copy of storage as a crash left it: taken in a replay, kept in the finding's folder, so that a plain recovery can be shown it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.model.file_names import bytes_of, text_of
from chaosckpt.model.finding import StoredFile, StoredStorage

LARGEST_BYTES = 32 << 20
"""More than this is not copied: a finding's folder is to be mailed."""
MOST_ENTRIES = 5000
_LONGEST_TEXT = 4 << 20


class StorageWatch:
    """Copies every tier before each attempt of one replay, and after the last. A replay that is started again begins anew."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: dict[int, StoredStorage] = {}

    def observe(self, number: int, arena: Arena) -> None:
        """Copy what attempt `number` is going to find. Never raises for what lies there: why it can't be copied is kept instead."""
        if number == 0:
            self.forget()
        else:
            self._seen[number] = self._copy(places(arena), self._directory / str(number))

    def stored(self, number: int) -> StoredStorage:
        """What attempt `number` found."""
        return self._seen.get(number, StoredStorage(missing="no earlier launch left anything on storage"))

    def keep(self, number: int, folder: Path) -> None:
        """Move the copy to `folder`, which is replaced."""
        shutil.rmtree(folder, ignore_errors=True)
        source = self._directory / str(number)
        if source.is_dir():
            shutil.copytree(source, folder, symlinks=True)

    def forget(self) -> None:
        """Remove every copy."""
        shutil.rmtree(self._directory, ignore_errors=True)
        self._seen.clear()

    def _copy(self, roots: dict[str, str], copy: Path) -> StoredStorage:
        shutil.rmtree(copy, ignore_errors=True)
        absent = [place for place, root in roots.items() if not os.path.isdir(os.path.dirname(root))]
        if absent:
            return StoredStorage(missing=f"the storage {absent[0]} lay on another machine")
        entries = [entry for place, root in sorted(roots.items()) for entry in _entries(place, Path(root))]
        total = sum(entry.bytes for entry in entries)
        if total > LARGEST_BYTES or len(entries) > MOST_ENTRIES:
            size = f"{total / (1 << 20):.0f} MiB in {len(entries)} entries"
            limit = f"{LARGEST_BYTES >> 20} MiB and {MOST_ENTRIES} entries"
            return StoredStorage(
                files=tuple(entries), missing=f"the stored files are {size}; a finding keeps at most {limit}"
            )
        try:
            for place, root in roots.items():
                if os.path.isdir(root):  # a job may have removed it
                    shutil.copytree(root, copy / place, symlinks=True)
        except (OSError, shutil.Error) as error:
            shutil.rmtree(copy, ignore_errors=True)
            return StoredStorage(files=tuple(entries), missing=f"the stored files could not be copied: {error}")
        mentions = [entry.path for entry in entries if _mentions(_at(copy, entry.path), entry, roots)]
        binary = next((path for path in mentions if not _is_text(_at(copy, path))), None)
        if binary is not None:
            why = f"{binary} holds the absolute path of the directory in which it was written"
            return StoredStorage(files=tuple(entries), missing=why)
        return StoredStorage(files=tuple(entries), roots=roots, mentions=tuple(mentions))


def places(arena: Arena) -> dict[str, str]:
    """The directory of each tier by its name in a finding's folder: `shared`, `out`, and `local-0` for that of node 0."""
    found = {}
    for number in range(len(arena.nodes)):
        for tier, directory in arena.tiers(number).items():
            if tier != "tmp":  # no checkpoint's place, and emptied by whoever runs the command again
                found[f"local-{number}" if tier == "local" else tier] = directory
    return found


def written_by(storage: StoredStorage, writers: dict[str, str]) -> StoredStorage:
    """The same, with which save wrote each file, by its path."""
    files = [msgspec.structs.replace(entry, writer=writers.get(entry.path, entry.writer)) for entry in storage.files]
    return msgspec.structs.replace(storage, files=tuple(files))


def _entries(place: str, root: Path) -> Iterator[StoredFile]:
    if not root.is_dir():
        return
    yield StoredFile(path=place, kind="directory")
    for parent, folders, names in os.walk(root):
        folders.sort()
        for name in sorted([*folders, *names]):
            path = Path(parent) / name
            where = f"{place}/{text_of(os.fsencode(path.relative_to(root)))}"
            status = path.lstat()
            if path.is_symlink():
                link = text_of(os.readlink(os.fsencode(path)))
                yield StoredFile(path=where, kind="link", link=link, modified_ns=status.st_mtime_ns)
            elif path.is_dir():
                yield StoredFile(path=where, kind="directory", modified_ns=status.st_mtime_ns)
            elif path.is_file():
                yield StoredFile(path=where, bytes=status.st_size, modified_ns=status.st_mtime_ns)


def _at(copy: Path, path: str) -> Path:
    return copy / os.fsdecode(bytes_of(path))


def _mentions(path: Path, entry: StoredFile, roots: dict[str, str]) -> bool:
    if entry.kind != "file" or entry.bytes > _LONGEST_TEXT:
        return False
    content = path.read_bytes()
    return any(os.fsencode(root) in content for root in roots.values())


def _is_text(path: Path) -> bool:
    try:
        path.read_bytes().decode()
    except UnicodeDecodeError:
        return False
    return True
