"""Huge pages: a fork server's memory in few large pages, so that a fork copies, and an exit frees, few page-table entries."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

_MADV_COLLAPSE = 25
_HUGE_BYTES = 2 << 20


def collapsing() -> Iterator[int]:
    """Put this process's private writable memory into huge pages, one a step; yields the address of each page so tried.

    Nothing but speed depends on it. A kernel before 6.1, or one without huge pages, refuses, and all stays as it is.
    """
    madvise = ctypes.CDLL(None, use_errno=True).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for first, end in _writable():
        for address in range(-(-first // _HUGE_BYTES) * _HUGE_BYTES, end - _HUGE_BYTES + 1, _HUGE_BYTES):
            madvise(address, _HUGE_BYTES, _MADV_COLLAPSE)
            yield address


def _writable() -> list[tuple[int, int]]:
    """[first, end) of each private writable mapping that no file is behind."""
    found = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            bounds, mode, _, _, _, *behind = line.split()
            if mode == "rw-p" and behind in ([], ["[heap]"]):
                first, end = (int(number, 16) for number in bounds.split("-"))
                found.append((first, end))
    return found
