"""Calls that write to a tracked descriptor: the supervisor writes, chunk by chunk, with exactly the caller's bytes."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable, Generator
from typing import Protocol

from msgspec.structs import replace

from chaosckpt.gate import kernel
from chaosckpt.gate import syscalls as k
from chaosckpt.gate.call import CONTINUE, Call, Continue, Pause, Steps, Wait
from chaosckpt.gate.descriptors import Description
from chaosckpt.gate.memory import CHUNK, Segment, total
from chaosckpt.gate.tree import Handler, Tree
from chaosckpt.model.fault import Hold, Short
from chaosckpt.model.operation import Operation

LARGE = 256 << 10
"""Bytes from which an undisturbed write is left to the kernel where nobody keeps its data: we would copy it twice."""
_DATA_ONLY = 1


class Source(Protocol):
    """Where the bytes of a write come from: the caller's memory, or another file."""

    def read(self, start: int, count: int) -> memoryview:
        """Bytes [start, start + count), `count` at most CHUNK; fewer at the source's end. Valid until the next call."""


class FromMemory:
    """Bytes of the caller's memory."""

    def __init__(self, tree: Tree, tid: int, segments: list[Segment]) -> None:
        self._tree, self._tid, self._segments = tree, tid, segments

    def read(self, start: int, count: int) -> memoryview:
        return self._tree.memory.gather(self._tid, self._segments, start, count)


class Sink:
    """A tracked file to write to, at its own position or at a given one."""

    def __init__(self, held: Description, position: int | None, flags: int = 0) -> None:
        self.own = held.descriptor
        self.flags = flags
        self.moves = position is None
        status = held.status()
        self.appends = bool(status & os.O_APPEND or flags & k.RWF_APPEND)
        self.aligned = bool(status & os.O_DIRECT)
        self.start = position or 0

    def offset(self, done: int) -> int:
        """Where the next byte goes, after `done` of this call's bytes; -1 on what has no position."""
        if self.appends:
            return os.fstat(self.own).st_size
        if not self.moves:
            return self.start + done
        try:
            return os.lseek(self.own, 0, os.SEEK_CUR)
        except OSError:
            return -1

    def write(self, data: memoryview, done: int) -> int:
        if self.aligned and len(data):
            room = mmap.mmap(-1, len(data))
            room[:] = data
            data = memoryview(room)
        if self.moves and not self.flags:
            return os.write(self.own, data)
        if self.flags:
            return os.pwritev(self.own, [data], -1 if self.moves else self.start + done, self.flags)
        return os.pwrite(self.own, data, self.start + done)


class Transfer:
    """One write, performed in chunks of bounded memory and observed in parts: one part when it is small."""

    def __init__(self, tree: Tree, operation: Operation, source: Source, sink: Sink) -> None:
        self._tree, self._operation, self._source, self._sink = tree, operation, source, sink
        self._length = operation.length or 0
        self._part = 0
        self.done = 0

    def go(self, stop: int) -> None:
        """Write up to byte `stop` of the call. Raises OSError when not one byte of the call could be written.

        Ends early, without an error, where the source or the device does: the call is then short, like the kernel's.
        """
        while True:
            wanted = min(stop - self.done, CHUNK)
            offset = self._sink.offset(self.done)
            try:
                data = self._source.read(self.done, wanted)
                count = self._sink.write(data, self.done)
            except OSError as error:
                if not self.done:
                    self._observe(offset, None, -(error.errno or errno.EIO))
                    raise
                return
            kept = bytes(data[:count]) if self._tree.keep_data else None
            self.done += count
            self._observe(offset, kept, count)
            if count < wanted or self.done >= stop:
                return

    def _observe(self, offset: int, data: bytes | None, result: int) -> None:
        length = self._length if result < 0 else result
        performed = replace(self._operation, part=self._part, offset=offset, length=length, result=result, data=data)
        self._part += 1
        self._tree.observe(performed)


def transfer(
    tree: Tree, operation: Operation, source: Source, sink: Sink, natively: Callable[[], bool] | None
) -> Generator[Wait, None, int | Continue]:
    """Decide and perform a write. `natively` says whether the kernel may do it itself; returns CONTINUE then."""
    length = operation.length or 0
    decision = yield from tree.decided(operation)
    if decision is None and not tree.keep_data and length >= LARGE and natively is not None and natively():
        tree.observe(replace(operation, result=length))
        return CONTINUE
    moving = Transfer(tree, operation, source, sink)
    if isinstance(decision, Hold):
        if decision.when == "before":
            yield Pause(operation, "before")
        elif decision.when == "torn":
            torn = min(max(decision.torn_bytes, 0), length)
            if torn:
                moving.go(torn)
            yield Pause(operation, "torn")
            if torn and moving.done < torn:
                return moving.done  # It had ended early before it was torn.
    stop = min(max(decision.length, 0), length) if isinstance(decision, Short) else length
    if moving.done < stop or not moving.done:
        moving.go(stop)
    if isinstance(decision, Hold) and decision.when == "after":
        yield Pause(operation, "after")
    return moving.done


def _write(tree: Tree, call: Call) -> Steps:
    return (yield from _written(tree, call, _single(call), None))


def _pwrite64(tree: Tree, call: Call) -> Steps:
    return (yield from _written(tree, call, _single(call), call.signed(3)))


def _writev(tree: Tree, call: Call) -> Steps:
    return (yield from _written(tree, call, None, None))


def _pwritev(tree: Tree, call: Call) -> Steps:
    return (yield from _written(tree, call, None, call.signed(3)))


def _pwritev2(tree: Tree, call: Call) -> Steps:
    offset = call.signed(3)
    return (yield from _written(tree, call, None, None if offset == -1 else offset, call.word(5)))


def _single(call: Call) -> list[Segment]:
    return [(call.arguments[1], call.arguments[2])]


def _written(tree: Tree, call: Call, segments: list[Segment] | None, position: int | None, flags: int = 0) -> Steps:
    held = tree.held(call, 0)
    if held is None:
        return CONTINUE
    if position is not None and position < 0:
        return -errno.EINVAL
    if segments is None:
        segments = tree.memory.vector(call.tid, call.arguments[1], call.signed(2))
    sink = Sink(held, position, flags)
    length = total(segments)
    operation = tree.operation(call, "write", held.raw, held=held, offset=sink.offset(0), length=length)
    source = FromMemory(tree, call.tid, segments)
    return (yield from transfer(tree, operation, source, sink, lambda: True))


def _by_descriptor(op: str, act: Callable[[Description, Call], object], **fields: Callable[[Call], int]) -> Handler:
    """A handler of a call on a tracked descriptor that the supervisor performs on its own copy."""

    def handler(tree: Tree, call: Call) -> Steps:
        held = tree.held(call, 0)
        if held is None:
            # To change the mode a file need not be open for writing.
            return tree.outside_descriptor(call, 0, op) if op == "chmod" else CONTINUE

        def action() -> int:
            act(held, call)
            return 0

        values = {name: value(call) for name, value in fields.items()}
        return (yield from tree.perform(tree.operation(call, op, held.raw, held=held, **values), action))

    return handler


HANDLERS: dict[str, Handler] = {
    "write": _write,
    "pwrite64": _pwrite64,
    "writev": _writev,
    "pwritev": _pwritev,
    "pwritev2": _pwritev2,
    "fsync": _by_descriptor("fsync", lambda held, call: os.fsync(held.descriptor)),
    "fdatasync": _by_descriptor(
        "fsync", lambda held, call: os.fdatasync(held.descriptor), flags=lambda call: _DATA_ONLY
    ),
    "syncfs": _by_descriptor("sync", lambda held, call: kernel.syncfs(held.descriptor)),
    "ftruncate": _by_descriptor(
        "ftruncate",
        lambda held, call: os.ftruncate(held.descriptor, call.signed(1)),
        length=lambda call: call.signed(1),
    ),
    "fallocate": _by_descriptor(
        "fallocate",
        lambda held, call: kernel.fallocate(held.descriptor, call.word(1), call.signed(2), call.signed(3)),
        flags=lambda call: call.word(1),
        offset=lambda call: call.signed(2),
        length=lambda call: call.signed(3),
    ),
    "fchmod": _by_descriptor(
        "chmod",
        lambda held, call: os.fchmod(held.descriptor, call.word(1) & 0o7777),
        mode=lambda call: call.word(1) & 0o7777,
    ),
}
