"""Files are put out of the page cache and read into it, and the kernel says so of every page."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaosckpt.measure import restarts as page_cache
from chaosckpt.measure.file_system import file_systems
from chaosckpt.measure.restarts import why_not_cold

PAGES = 25
LENGTH = (PAGES - 1) * 4096 + 7


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """A file that ends within a page, an empty one, and a link that is none of the job's files."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a").write_bytes(b"x" * LENGTH)
    (tmp_path / "b").touch()
    (tmp_path / "link").symlink_to("b")
    return page_cache.files_below([str(tmp_path)])


def test_files_below_a_directory(files):
    """At any depth, in order, without links."""
    assert [path.name for path in files] == ["b", "a"]


def test_cold_and_warm(files, tmp_path: Path):
    """On a disk nothing stays after eviction, and after reading everything is there."""
    (system,) = file_systems([("shared", tmp_path)])
    if system.kind in ("tmpfs", "ramfs"):
        pytest.skip(f"{tmp_path} is on {system.kind}, which has no other place than memory")
    assert page_cache.evict(files) == []
    assert page_cache.resident_bytes(files[1]) == 0
    page_cache.warm(files)
    assert page_cache.resident_bytes(files[1]) == PAGES * 4096
    assert page_cache.resident_bytes(files[0]) == 0
    assert why_not_cold(files) == ""


def test_memory_has_no_cold_cache(tmp_path_factory):
    """On tmpfs everything stays, and the reason is given instead of a figure."""
    path = Path("/dev/shm") / tmp_path_factory.mktemp("name").name / "file"
    (system,) = file_systems([("shared", "/dev/shm")])
    if system.kind != "tmpfs":
        pytest.skip(f"/dev/shm is {system.kind} here")
    path.parent.mkdir()
    try:
        path.write_bytes(bytes(LENGTH))
        assert page_cache.evict([path]) == [path]
        assert why_not_cold([path]) == "1 of 1 file cannot be evicted by posix_fadvise(DONTNEED), as on tmpfs"
    finally:
        path.unlink()
        path.parent.rmdir()


def test_without_files_there_is_nothing_to_evict():
    """A target that saves elsewhere leaves nothing on the tiers."""
    assert why_not_cold([]) == "the storage tiers have no file"
