"""Calls that open a file: the supervisor opens it, and the caller gets that open file at a number of the band."""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Generator

from chaosckpt.gate import syscalls as k
from chaosckpt.gate.call import CONTINUE, Call, Inject, Reply, Steps, Wait
from chaosckpt.gate.descriptors import Description
from chaosckpt.gate.fence.guard import SHARED
from chaosckpt.gate.paths import ResolvedPath
from chaosckpt.gate.tree import Handler, Tree

_CREATES = os.O_CREAT | os.O_TRUNC
_WRITES = os.O_WRONLY | os.O_RDWR | _CREATES
_UNNAMED = os.O_TMPFILE & ~os.O_DIRECTORY


def _open(tree: Tree, call: Call) -> Steps:
    return (yield from _opened(tree, call, None, 0, call.word(1), call.word(2)))


def _openat(tree: Tree, call: Call) -> Steps:
    return (yield from _opened(tree, call, 0, 1, call.word(2), call.word(3)))


def _creat(tree: Tree, call: Call) -> Steps:
    return (yield from _opened(tree, call, None, 0, os.O_WRONLY | _CREATES, call.word(1)))


def _openat2(tree: Tree, call: Call) -> Steps:
    size = call.arguments[3]
    if size < 24:
        return -errno.EINVAL
    flags, mode, resolve = struct.unpack("=QQQ", tree.memory.read(call.tid, call.arguments[2], 24))
    return (yield from _opened(tree, call, 0, 1, flags & 0xFFFFFFFF, mode & 0xFFFFFFFF, resolve))


def _opened(
    tree: Tree, call: Call, directory: int | None, path: int, flags: int, mode: int, resolve: int = 0
) -> Generator[Wait, None, Reply]:
    unfollowed = flags & os.O_NOFOLLOW or (flags & os.O_CREAT and flags & os.O_EXCL)
    creates = bool(flags & os.O_CREAT) and tree.text(call, path).endswith(
        b"/"
    )  # Which the kernel refuses as it stands.
    place = tree.entry(call, directory, path) if creates else tree.place(call, directory, path, follow=not unfollowed)
    if place.raw is None:
        return _outside(tree, place.path, flags)
    if resolve:
        return (
            -errno.ENOSYS
        )  # Callers fall back to openat: constraints on the way there can't be kept on a canonical path.
    if _is_special(place):
        tree.note(f"{place.raw} is a pipe, socket or device, and was opened untraced")
        return CONTINUE
    unnamed = bool(flags & _UNNAMED)
    mode = mode & 0o7777 & ~call.process.umask() if flags & os.O_CREAT or unnamed else 0
    writing = bool(flags & _WRITES) or unnamed
    addresses = tree.addresses(call.process)
    incarnation = addresses.begin(place.raw) if flags & _CREATES else addresses.incarnation(place.raw)
    if flags & os.O_PATH:
        # The kernel can't pass such a descriptor on; it neither reads nor writes, and paths through it still resolve.
        yield from tree.by_path(call, "open_read", place, lambda: os.close(_descriptor(place, flags, 0)), flags=flags)
        return CONTINUE
    opened: Description | None = None
    number = 0
    handle = tree.descriptors.reserve()

    def action() -> int:
        nonlocal opened, number
        number = tree.descriptors.free(call.process)
        own = _descriptor(place, flags, mode)
        opened = tree.descriptors.add(handle, own, place.path, place.raw or "", incarnation)
        tree.descriptors.assign(call.process, number, opened)
        opened.awaiting = call.process
        return 0

    op = "open_write" if writing else "open_read"
    operation = tree.operation(call, op, place.raw, incarnation=incarnation, handle=handle, flags=flags, mode=mode)
    try:
        yield from tree.perform(operation, action)
    finally:
        if opened is not None:
            opened.awaiting = None
    assert opened is not None
    return Inject(opened.descriptor, number, bool(flags & os.O_CLOEXEC))


def _outside(tree: Tree, path: bytes, flags: int) -> Reply:
    """Opened outside every root: only for reading, unless the guard allows more."""
    unnamed = flags & os.O_TMPFILE == os.O_TMPFILE
    if flags & os.O_PATH or not flags & _WRITES or (unnamed and path in SHARED):
        return CONTINUE
    if flags & os.O_CREAT and not unnamed and not os.path.lexists(path):
        return tree.made_outside(path, "open for writing")
    return tree.outside(path, "open for writing", opening=True)


def _descriptor(place: ResolvedPath, flags: int, mode: int) -> int:
    """Our own open file. O_DIRECT is left out: it changes no content, and would bind us to aligned buffers."""
    flags = (flags & ~os.O_DIRECT) | os.O_CLOEXEC
    before = os.umask(0)  # The mode is already the one that the caller's mask leaves.
    try:
        return os.open(place.reach, flags, mode)
    finally:
        os.umask(before)


def _is_special(place: ResolvedPath) -> bool:
    """Opening a pipe may wait for its other end, for which the supervisor can't."""
    try:
        kind = os.stat(place.reach).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def _mknod(tree: Tree, call: Call) -> Steps:
    return (yield from _node(tree, call, None, 0))


def _mknodat(tree: Tree, call: Call) -> Steps:
    return (yield from _node(tree, call, 0, 1))


def _node(tree: Tree, call: Call, directory: int | None, path: int) -> Generator[Wait, None, Reply]:
    """A regular file made by mknod is an open that creates and closes; other nodes hold no data."""
    place = tree.entry(call, directory, path)
    if place.raw is None:
        return tree.made_outside(place.path, "mknod")
    mode = call.word(path + 1)
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        tree.note(f"{place.raw} was made as a pipe, socket or device")
        return CONTINUE
    mode = mode & 0o7777 & ~call.process.umask()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    incarnation = tree.addresses(call.process).begin(place.raw)

    def action() -> None:
        os.close(_descriptor(place, flags, mode))

    return (yield from tree.by_path(call, "open_write", place, action, incarnation=incarnation, flags=flags, mode=mode))


HANDLERS: dict[str, Handler] = {
    "open": _open,
    "openat": _openat,
    "creat": _creat,
    "openat2": _openat2,
    "mknod": _mknod,
    "mknodat": _mknodat,
}
"""System call -> handler. `k.NUMBERS` says which of them this machine has."""
assert set(HANDLERS) <= set(k.TABLES["x86_64"])
