"""A directory's entries as the kernel lists them, and the same without some of them.

Layouts: `struct linux_dirent64` and the older `struct linux_dirent` of getdents(2): inode and offset of 8 bytes each, the
record's length in 2, then the type and the name, or the name alone; zero-terminated, padded.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

from chaosckpt.gate import syscalls as k
from chaosckpt.gate.kernel import fail, libc

_LENGTH_OFFSET = 16
_NAME_OFFSETS = {"getdents": 18, "getdents64": 19}
NAME_OFFSET = {k.NUMBERS[name]: offset for name, offset in _NAME_OFFSETS.items() if name in k.NUMBERS}
"""System call number -> where the name stands in a record."""


def without(entries: bytes, hides: Callable[[bytes], bool], name_offset: int) -> tuple[bytes, list[bytes]]:
    """The records whose names `hides` is false of, unchanged and in order, and the names that were left out."""
    kept, hidden = bytearray(), []
    position = 0
    while position < len(entries):
        (length,) = struct.unpack_from("=H", entries, position + _LENGTH_OFFSET)
        record = entries[position : position + length]
        name = record[name_offset : record.index(b"\0", name_offset)]
        if hides(name):
            hidden.append(name)
        else:
            kept += record
        position += length
    return bytes(kept), hidden


def read_entries(number: int, descriptor: int, count: int) -> bytes:
    """The next entries of an open directory, at most `count` bytes of them; empty at its end. Raises the call's OSError."""
    room = ctypes.create_string_buffer(count)
    done = libc.syscall(ctypes.c_long(number), ctypes.c_int(descriptor), room, ctypes.c_size_t(count))
    if done < 0:
        raise fail("getdents")
    return room.raw[:done]
