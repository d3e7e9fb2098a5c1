"""Space that is taken for a while: storage and shared memory are looked at while something else goes on."""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from pathlib import Path

from chaosckpt.measure.storage_use import Watch, shared_memory_bytes, storage_bytes


def test_a_watch_sees_what_comes_and_goes():
    """A size that is there for a few looks only is the peak, whenever looks are taken."""
    sizes = iter([100, 400, 150])
    seen = threading.Event()
    last = [0]

    def size() -> int:
        last[0] = next(sizes, last[0])
        if last[0] == 150:
            seen.set()
        return last[0]

    with Watch(size, lambda: 7) as watch:
        seen.wait()
    found = watch.peaks(saves=3)
    assert (found.temporary_bytes, found.shared_memory_bytes, found.saves) == (250, 0, 3)
    assert found.looks >= 4


def test_storage_of_several_tiers(tmp_path: Path):
    """The files of all tiers together."""
    for name, size in (("local", 10), ("shared", 32)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(bytes(size))
    assert storage_bytes([(name, str(tmp_path / name)) for name in ("local", "shared")]) == 42


def test_shared_memory_is_found_where_it_is_mapped():
    """A file of /dev/shm counts for its length, once, also when it has no name any more."""
    before = shared_memory_bytes(os.getpid())
    with tempfile.TemporaryFile(dir="/dev/shm") as file:
        file.truncate(3 * mmap.PAGESIZE)
        with mmap.mmap(file.fileno(), 0), mmap.mmap(file.fileno(), mmap.PAGESIZE):
            assert shared_memory_bytes(os.getpid()) - before == 3 * mmap.PAGESIZE
    assert shared_memory_bytes(os.getpid()) == before
