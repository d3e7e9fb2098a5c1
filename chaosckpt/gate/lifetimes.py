"""Calls that begin or end something: descriptors duplicated and closed, processes forked, replaced and ended."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Generator

from chaosckpt.gate import syscalls as k
from chaosckpt.gate.call import CONTINUE, Call, Discard, Inject, Reply, Steps, Wait
from chaosckpt.gate.descriptors import Description
from chaosckpt.gate.kernel import pidfd_getfd
from chaosckpt.gate.tree import Handler, Tree

_CLONE_FLAGS = struct.Struct("=Q")


def closing(tree: Tree, call: Call, number: int) -> Generator[Wait, None, None]:
    """This process gives up `number`: an operation when it was the last reference in the tree."""
    held = tree.descriptors.find(call.process, number)
    if held is None:
        tree.descriptors.unclaim(call.process, number)
        return
    if tree.descriptors.last(call.process, number, held):
        yield from ended(tree, call, held, number)
    tree.descriptors.leave(call.process, number)


def ended(tree: Tree, call: Call, held: Description, number: int | None = None) -> Generator[Wait, None, None]:
    """The last reference goes. Our copy goes first, so that the caller's own close releases locks.

    The caller's own reference at `number` goes with the answer; when it is held after the close, at once.

    Raises OSError where an error is injected.
    """

    def action() -> int:
        tree.descriptors.release(held)
        return 0

    try:
        yield from tree.perform(tree.operation(call, "close", held.raw, held=held), action, discard=number)
    except OSError:
        tree.descriptors.release(held)  # A close that fails has closed.
        raise


def _close(tree: Tree, call: Call) -> Steps:
    number = call.descriptor(0)
    if tree.held(call, 0) is None:
        tree.descriptors.unclaim(call.process, number)
        return CONTINUE
    try:
        yield from closing(tree, call, number)
    except OSError as error:
        tree.descriptors.leave(call.process, number)
        return Discard(number, error.errno or errno.EIO)
    return CONTINUE


def _close_range(tree: Tree, call: Call) -> Steps:
    first, last, flags = call.descriptor(0), call.descriptor(1), call.word(2)
    if flags & k.CLOSE_RANGE_CLOEXEC or first > last:
        return CONTINUE
    for number in tree.descriptors.held_numbers(call.process, first, last):
        try:
            yield from closing(tree, call, number)
        except OSError:
            tree.descriptors.leave(call.process, number)  # close_range reports no error of a single descriptor.
    return CONTINUE


def _dup(tree: Tree, call: Call) -> Reply:
    held = tree.held(call, 0)
    return CONTINUE if held is None else _duplicate(tree, call, held, 0, cloexec=False)


def _fcntl(tree: Tree, call: Call) -> Reply:
    """F_DUPFD and F_DUPFD_CLOEXEC: of a tracked file, or of another with a minimum in the band."""
    minimum = call.descriptor(2)
    cloexec = call.word(1) == k.F_DUPFD_CLOEXEC
    held = tree.held(call, 0)
    if held is not None and minimum < tree.descriptors.limit:
        return _duplicate(tree, call, held, minimum, cloexec=cloexec)
    if held is not None or not tree.descriptors.in_band(minimum):
        return CONTINUE
    number = tree.descriptors.free(call.process, minimum)
    own = pidfd_getfd(call.process.pidfd, call.descriptor(0))
    tree.descriptors.claim(call.process, number)
    return Inject(own, number, cloexec, lent=True)


def _duplicate(tree: Tree, call: Call, held: Description, minimum: int, *, cloexec: bool) -> Inject:
    number = tree.descriptors.free(call.process, minimum)
    tree.descriptors.assign(call.process, number, held)
    return Inject(held.descriptor, number, cloexec)


def _dup2(tree: Tree, call: Call, flags: int = 0) -> Steps:
    old, new = call.descriptor(0), call.descriptor(1)
    held = tree.held(call, 0)
    if old == new or flags & ~os.O_CLOEXEC or (held is None and not _is_open(call, old)):
        return CONTINUE  # Nothing changes, or the kernel refuses.
    descriptors = tree.descriptors
    if tree.held(call, 1) is not held or held is None:
        try:
            yield from closing(tree, call, new)
        except OSError:
            pass  # dup2 closes silently.
    if held is None:
        if descriptors.in_band(new):
            descriptors.claim(call.process, new)
        return CONTINUE
    if descriptors.in_band(new) or (tree.low_descriptors and new < descriptors.limit):
        descriptors.assign(call.process, new, held)
        return Inject(held.descriptor, new, bool(flags & os.O_CLOEXEC))
    tree.note(f"{held.raw} was duplicated to descriptor {new}; what is written there is not traced")
    return CONTINUE


def _dup3(tree: Tree, call: Call) -> Steps:
    if call.descriptor(0) == call.descriptor(1):
        return CONTINUE
    return (yield from _dup2(tree, call, call.word(2)))


def _is_open(call: Call, number: int) -> bool:
    return os.path.lexists(f"/proc/{call.process.pid}/fd/{number}")


def _fork(tree: Tree, call: Call) -> Reply:
    tree.processes.forking.add(call.tid)
    return CONTINUE


def _clone3(tree: Tree, call: Call) -> Reply:
    (flags,) = _CLONE_FLAGS.unpack(tree.memory.read(call.tid, call.arguments[0], 8))
    if not flags & k.CLONE_THREAD:
        tree.processes.forking.add(call.tid)
    return CONTINUE


def _execve(tree: Tree, call: Call) -> Reply:
    """Descriptors marked close-on-exec go if it succeeds: the next call of this process finds out."""
    call.process.executing = True
    return CONTINUE


def swept(tree: Tree, call: Call) -> Generator[Wait, None, None]:
    """After an exec: files that went with the old program are closed by it."""
    call.process.executing = False
    tree.processes.executed(call.process)
    for held in tree.descriptors.abandoned():
        try:
            yield from ended(tree, call, held)
        except OSError:
            continue  # Nobody is left to be told.


def _exit_group(tree: Tree, call: Call) -> Steps:
    for held in tree.descriptors.sole_holder(call.process):
        try:
            yield from ended(tree, call, held)
        except OSError:
            continue  # exit has no result.
    call.process.exiting = True
    return CONTINUE


def _umask(tree: Tree, call: Call) -> Reply:
    call.process.mask = call.word(0) & 0o777
    return CONTINUE


def _sync(tree: Tree, call: Call) -> Steps:
    """Every root is synced; the operation is addressed at the first."""
    raw = f"{tree.resolver.roots[0][1]}:." if tree.resolver.roots else None
    if raw is not None:
        yield from tree.perform(tree.operation(call, "sync", raw), lambda: 0)
    return CONTINUE


def _mmap(tree: Tree, call: Call) -> Reply:
    held = tree.held(call, 4)
    if held is not None:
        tree.note(f"{held.raw} was mapped shared and writable; what is written through the mapping is not traced")
    return CONTINUE


def _refused_ring(tree: Tree, call: Call) -> Reply:
    tree.note("a ring for asynchronous input and output (io_uring or aio) was refused with ENOSYS")
    return -errno.ENOSYS


HANDLERS: dict[str, Handler] = {
    "close": _close,
    "close_range": _close_range,
    "dup": _dup,
    "dup2": _dup2,
    "dup3": _dup3,
    "fcntl": _fcntl,
    "fork": _fork,
    "vfork": _fork,
    "clone": _fork,
    "clone3": _clone3,
    "execve": _execve,
    "execveat": _execve,
    "exit_group": _exit_group,
    "umask": _umask,
    "sync": _sync,
    "mmap": _mmap,
    "io_uring_setup": _refused_ring,
    "io_setup": _refused_ring,
}
