"""Restarts in a fresh allocation: new processes by exec load what the job has left, with a warm and with a cold page cache."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from chaosckpt.engine.wire.programs import MeasuringProgram
from chaosckpt.errors import UsageError
from chaosckpt.measure.figures import restart
from chaosckpt.measure.job import MeasuredJob
from chaosckpt.measure.measurement import Restart
from chaosckpt.model.phrasing import plural
from chaosckpt.model.topology import Topology
from chaosckpt.training.metered import Metered

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_LIBC.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
_MAP_FAILED = ctypes.c_void_p(-1).value
CHUNK_BYTES = 1 << 20


def files_below(directories: Sequence[str]) -> list[Path]:
    """Every regular file below these directories."""
    found = (Path(base) / name for directory in directories for base, _, names in os.walk(directory) for name in names)
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def warm(files: Sequence[Path]) -> None:
    """Read every file once."""
    for path in files:
        with path.open("rb", buffering=0) as stream:
            while stream.read(CHUNK_BYTES):
                pass


def evict(files: Sequence[Path]) -> list[Path]:
    """Put every file out of the cache, and return those of which something has stayed there, as it does on tmpfs."""
    for path in files:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)  # a page that isn't written back yet would stay
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    return [path for path in files if resident_bytes(path)]


def resident_bytes(path: Path) -> int:
    """How much of a file is in the cache, in whole pages. Raises OSError where the kernel doesn't tell."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        length = os.fstat(descriptor).st_size
        if length == 0:
            return 0
        address = _LIBC.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if address == _MAP_FAILED:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
        try:
            pages = ctypes.create_string_buffer(-(-length // mmap.PAGESIZE))
            if _LIBC.mincore(address, length, pages) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
        finally:
            _LIBC.munmap(address, length)
        return sum(page & 1 for page in pages.raw) * mmap.PAGESIZE
    finally:
        os.close(descriptor)


UNMARKED = "the target doesn't mark when loading starts, so loading includes the choice of the checkpoint"
INTERPRETER = "the files of the interpreter stay cached"


class Restarts(msgspec.Struct, frozen=True):
    """Restarts with the page cache in one state: for each, what its ranks told."""

    cache: Literal["warm", "cold"]
    lives: tuple[tuple[Metered, ...], ...]
    note: str = ""


def restarted(
    job: MeasuredJob, topology: Topology, repeats: int, progress: Callable[[str], None], *, cold: bool
) -> tuple[tuple[Metered, ...], ...]:
    """So many restarts, one after another. Before each one the checkpoint's files are read, or put out of the page cache."""
    lives = []
    cache = "cold" if cold else "warm"
    for number in range(repeats):
        progress(f"restart {number + 1} of {repeats} with a {cache} page cache")
        files = _files(job, topology)
        if cold:
            evict(files)
        else:
            warm(files)
        told = job.run(topology, MeasuringProgram(kind="restart"), "the restart")
        if any(metered.recovery is None or metered.recovery.chosen is None for metered in told):
            raise UsageError(
                "the restart found no checkpoint, although saves were acknowledged; run `chaosckpt fuzz` with the same scenario to "
                "find out why"
            )
        lives.append(told)
    return tuple(lives)


def measured(
    job: MeasuredJob, topology: Topology, repeats: int, progress: Callable[[str], None]
) -> tuple[Restarts, ...]:
    """Warm restarts, then cold ones where the cache can be emptied; else the warm ones' note says why it can't."""
    lives = restarted(job, topology, repeats, progress, cold=False)
    why = why_not_cold(_files(job, topology))
    if why:
        return (Restarts("warm", lives, f"no figures with a cold page cache: {why}"),)
    cold = restarted(job, topology, repeats, progress, cold=True)
    return Restarts("warm", lives), Restarts("cold", cold, INTERPRETER)


def figure(found: Restarts) -> Restart:
    """The figures of these restarts."""
    marked = all(metered.recovery is not None and metered.recovery.marked for life in found.lives for metered in life)
    return restart(found.cache, found.lives, "; ".join(filter(None, [found.note, "" if marked else UNMARKED])))


def why_not_cold(files: Sequence[Path]) -> str:
    """Why these files can't be put out of the page cache; empty where they can, and then they are."""
    if not files:
        return "the storage tiers have no file"
    try:
        stayed = evict(files)
    except OSError as error:
        return f"the page cache can't be emptied or inspected: {error.strerror}"
    if stayed:
        return (
            f"{len(stayed)} of {plural(len(files), 'file')} cannot be evicted by posix_fadvise(DONTNEED), as on tmpfs"
        )
    return ""


def _files(job: MeasuredJob, topology: Topology) -> list[Path]:
    return files_below([directory for _, directory in job.directories(topology)])
