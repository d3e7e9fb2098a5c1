"""Space that is taken for a while only: a thread looks at the tiers, and at /dev/shm, again and again while a job saves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from chaosckpt.engine.rank.instruments import tier_size
from chaosckpt.engine.wire.process_tree import descendants

PERIOD_SECONDS = 0.002
"""Between two looks. A look itself takes longer where there are many files: `Peaks.looks` tells how many there were."""


class Peaks(msgspec.Struct, frozen=True, kw_only=True):
    """The most that was seen. `temporary_bytes`: above what lay on the tiers both before and after."""

    temporary_bytes: int
    shared_memory_bytes: int
    looks: int
    saves: int
    """So many of the whole job, while it was looked."""


class Watch:
    """Looks from the beginning of a `with` block to its end. Both functions return bytes."""

    def __init__(self, storage: Callable[[], int], shared_memory: Callable[[], int]) -> None:
        self._storage = storage
        self._shared_memory = shared_memory
        self._sizes: list[int] = []
        self._shared: list[int] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="chaosckpt-space", daemon=True)

    def __enter__(self) -> Watch:
        self.look()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self.look()

    def look(self) -> None:
        """Look once."""
        self._sizes.append(self._storage())
        self._shared.append(self._shared_memory())

    def _run(self) -> None:
        while not self._over.wait(PERIOD_SECONDS):
            self.look()

    def peaks(self, saves: int) -> Peaks:
        """What was seen between the first look and the last one, in which there were so many saves."""
        return peaks(self._sizes, self._shared, saves)


def peaks(sizes: Sequence[int], shared: Sequence[int], saves: int) -> Peaks:
    """The peaks of bytes on storage, and in shared memory, seen one after another; the first and the last were seen at rest."""
    return Peaks(
        temporary_bytes=max(0, max(sizes) - max(sizes[0], sizes[-1])),
        shared_memory_bytes=max(0, max(shared) - shared[0]),
        looks=len(sizes),
        saves=saves,
    )


def storage_bytes(directories: Sequence[tuple[str, str]]) -> int:
    """The sizes of all files below these (tier, directory) pairs."""
    return sum(tier_size(tier, directory).apparent_bytes for tier, directory in directories)


def shared_memory_bytes(root: int) -> int:
    """What a process and all that it started have mapped of files in /dev/shm, each file once."""
    files: dict[str, int] = {}
    for pid in descendants(root):
        try:
            maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it ended meanwhile
        for line in maps.splitlines():
            if " /dev/shm/" in line:
                span, _, offset, device, inode, *_ = line.split(None, 5)
                first, last = (int(end, 16) for end in span.split("-"))
                file = f"{device} {inode}"
                files[file] = max(files.get(file, 0), int(offset, 16) + last - first)
    return sum(files.values())
