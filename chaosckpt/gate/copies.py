"""Calls that move bytes between descriptors in the kernel: the supervisor performs them when the output is tracked."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import termios
from collections.abc import Generator

from chaosckpt.gate import syscalls as k
from chaosckpt.gate.call import CONTINUE, Call, Continue, Readable, Reply, Steps, Wait
from chaosckpt.gate.descriptors import Description
from chaosckpt.gate.kernel import pidfd_getfd
from chaosckpt.gate.reads import available
from chaosckpt.gate.tree import Handler, Tree
from chaosckpt.gate.writes import Sink, transfer

_OFFSET = struct.Struct("=q")
_SPLICE_NONBLOCK = 2


class FromFile:
    """Bytes of a regular file from `start` on, read without moving its position."""

    def __init__(self, descriptor: int, start: int) -> None:
        self._descriptor, self._start = descriptor, start

    def read(self, start: int, count: int) -> memoryview:
        return memoryview(os.pread(self._descriptor, count, self._start + start))


class FromPipe:
    """Bytes of a pipe that has some, or has ended."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, start: int, count: int) -> memoryview:
        return memoryview(os.read(self._descriptor, count) if count else b"")


def _sendfile(tree: Tree, call: Call) -> Steps:
    return (yield from _copied(tree, call, source=1, source_offset=2, sink=0, sink_offset=None, count=3))


def _copy_file_range(tree: Tree, call: Call) -> Steps:
    if call.word(5):
        return CONTINUE  # No flag is defined: the kernel refuses.
    return (yield from _copied(tree, call, source=0, source_offset=1, sink=2, sink_offset=3, count=4))


def _splice(tree: Tree, call: Call) -> Steps:
    return (yield from _copied(tree, call, source=0, source_offset=1, sink=2, sink_offset=3, count=4))


def _copied(
    tree: Tree, call: Call, *, source: int, source_offset: int, sink: int, sink_offset: int | None, count: int
) -> Generator[Wait, None, Reply]:
    """The arguments are the indices of the call's arguments."""
    wanted = min(call.arguments[count], k.LARGEST_TRANSFER)
    origin, target = tree.held(call, source), tree.held(call, sink)
    start = _offset_argument(tree, call, source_offset)
    if origin is not None:
        offset, length = available(origin, start, wanted)
        operation = tree.operation(call, "read", origin.raw, held=origin, offset=offset, length=wanted)
        yield from tree.perform(operation, lambda: length)
    if target is None:
        return CONTINUE
    position = None if sink_offset is None else _offset_argument(tree, call, sink_offset)
    own = os.dup(origin.descriptor) if origin is not None else pidfd_getfd(call.process.pidfd, call.descriptor(source))
    try:
        kind = os.fstat(own).st_mode
        if stat.S_ISREG(kind):
            os.pread(own, 0, 0)  # EBADF for a file not open for reading, before anything is decided.
        if target.status() & os.O_APPEND:
            return -(errno.EBADF if call.number == k.NUMBERS["copy_file_range"] else errno.EINVAL)
        if stat.S_ISREG(kind):
            done = yield from _from_file(tree, call, own, start, target, position, wanted)
        elif stat.S_ISFIFO(kind):
            done = yield from _from_pipe(tree, call, own, target, position, wanted)
        else:
            return -errno.EINVAL  # Callers fall back to read and write.
    finally:
        os.close(own)
    if isinstance(done, Continue):
        return CONTINUE
    if start is not None:
        tree.memory.write(call.tid, call.arguments[source_offset], _OFFSET.pack(start + done))
    if sink_offset is not None and position is not None:
        tree.memory.write(call.tid, call.arguments[sink_offset], _OFFSET.pack(position + done))
    return done


def _from_file(
    tree: Tree, call: Call, own: int, start: int | None, target: Description, position: int | None, wanted: int
) -> Generator[Wait, None, int | Continue]:
    first = os.lseek(own, 0, os.SEEK_CUR) if start is None else start
    size = os.fstat(own).st_size
    ranged = call.number == k.NUMBERS["copy_file_range"]
    length = max(0, min(wanted, size - first)) if size or ranged else wanted  # Files of /proc say 0 and hold more.
    if first < 0 or (position is not None and position < 0):
        return -errno.EINVAL
    if ranged:
        _refuse_overlap(own, first, target, position, length)
    sink = Sink(target, position)
    operation = tree.operation(call, "write", target.raw, held=target, offset=sink.offset(0), length=length)
    done = yield from transfer(tree, operation, FromFile(own, first), sink, lambda: size > 0)
    if start is None and not isinstance(done, Continue):
        os.lseek(own, first + done, os.SEEK_SET)
    return done


def _from_pipe(
    tree: Tree, call: Call, own: int, target: Description, position: int | None, wanted: int
) -> Generator[Wait, None, int | Continue]:
    """The kernel would wait for data; the supervisor can't, so that the handler waits instead."""
    never_waits = bool(fcntl.fcntl(own, fcntl.F_GETFL) & os.O_NONBLOCK) or bool(call.word(5) & _SPLICE_NONBLOCK)
    if not never_waits:
        yield Readable(own)
    present = struct.unpack("=i", fcntl.ioctl(own, termios.FIONREAD, bytes(4)))[0]
    if never_waits and not present and wanted:
        return -errno.EAGAIN
    length = min(wanted, present)
    sink = Sink(target, position)
    operation = tree.operation(call, "write", target.raw, held=target, offset=sink.offset(0), length=length)
    return (yield from transfer(tree, operation, FromPipe(own), sink, None))


def _offset_argument(tree: Tree, call: Call, index: int) -> int | None:
    """The file offset that argument `index` points at; None for a null pointer: the file's own position."""
    address = call.arguments[index]
    return _OFFSET.unpack(tree.memory.read(call.tid, address, 8))[0] if address else None


def _refuse_overlap(own: int, first: int, target: Description, position: int | None, length: int) -> None:
    if not os.path.samestat(os.fstat(own), os.fstat(target.descriptor)):
        return
    to = os.lseek(target.descriptor, 0, os.SEEK_CUR) if position is None else position
    if first < to + length and to < first + length:
        raise OSError(errno.EINVAL, "the ranges overlap")


HANDLERS: dict[str, Handler] = {"sendfile": _sendfile, "splice": _splice, "copy_file_range": _copy_file_range}
