"""Calls that read: files, directories, and questions about names. The kernel performs them once they are decided."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Generator
from typing import Any

from chaosckpt.gate import syscalls as k
from chaosckpt.gate.call import CONTINUE, Call, Reply, Steps, Wait
from chaosckpt.gate.descriptors import Description
from chaosckpt.gate.kernel import fail, libc
from chaosckpt.gate.memory import CHUNK, total
from chaosckpt.gate.tree import Handler, Tree
from chaosckpt.model.fault import Hide
from chaosckpt.model.file_names import text_of

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


Family = Generator[Wait, None, Reply]


def available(held: Description, position: int | None, wanted: int) -> tuple[int, int]:
    """(offset, bytes that a read of `wanted` bytes there would return) of a regular file."""
    try:
        offset = os.lseek(held.descriptor, 0, os.SEEK_CUR) if position is None else position
        return offset, max(0, min(wanted, os.fstat(held.descriptor).st_size - offset))
    except OSError:
        return 0, 0


def _read_at(tree: Tree, call: Call, position: int | None, wanted: int | None = None) -> Family:
    held = tree.held(call, 0)
    if held is None:
        return CONTINUE
    if wanted is None:
        wanted = total(tree.memory.vector(call.tid, call.arguments[1], call.signed(2)))
    offset, length = available(held, position, min(wanted, k.LARGEST_TRANSFER))
    operation = tree.operation(call, "read", held.raw, held=held, offset=offset, length=wanted)
    yield from tree.perform(operation, lambda: length)
    return CONTINUE


def _preadv2(tree: Tree, call: Call) -> Steps:
    position = call.signed(3)
    return (yield from _read_at(tree, call, None if position == -1 else position))


def _list(tree: Tree, call: Call) -> Steps:
    held = tree.held(call, 0)
    if held is None:
        return CONTINUE
    operation = tree.operation(call, "list", held.raw, held=held)
    decision = yield from tree.decided(operation)
    if not isinstance(decision, Hide):
        yield from tree.carry_out(operation, decision, lambda: 0)
        return CONTINUE
    shared, above, hidden = held.descriptor, held.raw.removesuffix("."), frozenset(decision.names)
    above = above if above.endswith(":") else f"{above}/"

    def hides(name: bytes) -> bool:
        return (
            tree.addresses(call.process).decoded(above + text_of(name)).rpartition(":")[2].rpartition("/")[2] in hidden
        )

    def filtered() -> int:
        # The position in the directory is one with the caller's. An empty answer would mean the end, so it is read on.
        entries = kept = read_entries(call.number, shared, min(call.word(2), CHUNK))
        while entries:
            kept, left_out = without(entries, hides, NAME_OFFSET[call.number])
            if left_out:
                tree.hidden(operation, [text_of(name) for name in left_out])
            if kept:
                break
            entries = kept = read_entries(call.number, shared, min(call.word(2), CHUNK))
        if kept:
            tree.memory.write(call.tid, call.arguments[1], kept)
        return len(kept)

    return (yield from tree.carry_out(operation, decision, filtered))


def _ask(
    op: str, ask: Callable[[bytes], Any], *, follow: bool = True, flags: int | None = None
) -> Callable[..., Family]:
    """A handler of a question about a path; argument `flags` may say not to follow a link."""

    def family(tree: Tree, call: Call, directory: int | None = None, path: int = 0) -> Family:
        followed = follow and not (flags is not None and call.word(flags) & k.AT_SYMLINK_NOFOLLOW)
        place = tree.place(call, directory, path, follow=followed)
        if place.raw is None:
            return CONTINUE
        yield from tree.by_path(call, op, place, lambda: ask(place.reach))
        return CONTINUE

    return family


def _at(family: Callable[..., Family]) -> Handler:
    return lambda tree, call: family(tree, call, 0, 1)


_readlink = _ask("readlink", os.readlink, follow=False)
_access = _ask("access", os.stat)

HANDLERS: dict[str, Handler] = {
    "read": lambda tree, call: _read_at(tree, call, None, call.arguments[2]),
    "pread64": lambda tree, call: _read_at(tree, call, call.signed(3), call.arguments[2]),
    "readv": lambda tree, call: _read_at(tree, call, None),
    "preadv": lambda tree, call: _read_at(tree, call, call.signed(3)),
    "preadv2": _preadv2,
    "getdents": _list,
    "getdents64": _list,
    "stat": _ask("stat", os.stat),
    "lstat": _ask("stat", os.lstat, follow=False),
    "newfstatat": _at(_ask("stat", os.lstat, flags=3)),
    "statx": _at(_ask("stat", os.lstat, flags=2)),
    "access": _access,
    "faccessat": _at(_access),
    "faccessat2": _at(_ask("access", os.lstat, flags=3)),
    "readlink": _readlink,
    "readlinkat": _at(_readlink),
}
"""Our own asking tells the observer; the kernel then answers the caller, and may refuse more (an access check)."""
