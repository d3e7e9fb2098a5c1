"""The kernel's page cache: files are read into it or put out of it, and afterwards it is looked up which pages are there."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from pathlib import Path

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
