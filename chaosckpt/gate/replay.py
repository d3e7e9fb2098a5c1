"""How a trace of operations becomes the directory that they left: names, contents, modes, symbolic and hard links."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from chaosckpt.model.file_names import bytes_of
from chaosckpt.model.operation import Operation

_EXCHANGE = 2
_UNNAMED = os.O_TMPFILE & ~os.O_DIRECTORY
_KEPT_FLAGS = os.O_ACCMODE | os.O_CREAT | os.O_EXCL | os.O_TRUNC | os.O_DIRECTORY | _UNNAMED
_libc = ctypes.CDLL(None, use_errno=True)


def replay(operations: Iterable[Operation], roots: Mapping[str, Path]) -> None:
    """Apply a trace that keeps data, in its order, to the directories `roots` (tier -> path), which start empty.
    A root itself may be removed, moved and made again.

    Operations of several ranks may be mixed, in the order in which they were observed. Failed operations change
    nothing. What went through an untraced channel (a shared mapping, a duplicate at a low number) is missing. Raises
    OSError where the directories don't fit the trace, and ValueError for a write without its data. Not for use beside
    other threads: it sets the umask for its own duration.
    """
    for _ in stepwise(operations, roots):
        pass


def stepwise(operations: Iterable[Operation], roots: Mapping[str, Path]) -> Iterator[Operation]:
    """The same, operation by operation: yields each when it is applied."""
    state = _Replay({tier: os.fsencode(path) for tier, path in roots.items()})
    before = os.umask(0)
    try:
        for operation in operations:
            action = _ACTIONS.get(operation.address.op)
            if action is not None and (operation.result is None or operation.result >= 0):
                action(state, operation)
            yield operation
    finally:
        os.umask(before)
        for descriptor in state.files.values():
            os.close(descriptor)


class _Replay:
    """The roots, and the files that are open at this point of the trace."""

    def __init__(self, roots: dict[str, bytes]) -> None:
        self.roots = roots
        self.files: dict[tuple[int, int], int] = {}

    def path(self, raw: str) -> bytes:
        tier, _, relative = raw.partition(":")
        # The kernel neither makes, removes nor renames a directory by a name that ends with a dot.
        return self.roots[tier] if relative == "." else os.path.join(self.roots[tier], bytes_of(relative))

    def file(self, it: Operation) -> int | None:
        return self.files.get((it.address.rank, it.handle)) if it.handle else None

    def reach(self, it: Operation) -> bytes:
        """A path to the operation's file: through our open file if there is one, since its name may be another's now."""
        descriptor = self.file(it)
        return self.path(it.raw) if descriptor is None else b"/proc/self/fd/%d" % descriptor


def _open(state: _Replay, it: Operation) -> None:
    descriptor = os.open(state.path(it.raw), it.flags & _KEPT_FLAGS | os.O_CLOEXEC, it.mode)
    if it.handle:
        state.files[it.address.rank, it.handle] = descriptor
    else:
        os.close(descriptor)


def _open_read(state: _Replay, it: Operation) -> None:
    if it.handle and not it.flags & os.O_PATH:
        _open(state, it)


def _close(state: _Replay, it: Operation) -> None:
    descriptor = state.files.pop((it.address.rank, it.handle), None)
    if descriptor is not None:
        os.close(descriptor)


def _write(state: _Replay, it: Operation) -> None:
    if it.data is None:
        if it.result:
            raise ValueError(f"the trace has no data for {it.address}: record it with keep_data")
        return
    descriptor = state.file(it)
    own = os.open(state.path(it.raw), os.O_WRONLY | os.O_CLOEXEC) if descriptor is None else descriptor
    try:
        done = 0
        while done < len(it.data):
            done += os.pwrite(own, it.data[done:], (it.offset or 0) + done)
    finally:
        if descriptor is None:
            os.close(own)


def _fallocate(state: _Replay, it: Operation) -> None:
    descriptor = os.open(state.reach(it), os.O_WRONLY | os.O_CLOEXEC)
    try:
        long = ctypes.c_int64
        if _libc.fallocate(descriptor, it.flags, long(it.offset or 0), long(it.length or 0)):
            raise _failure("fallocate")
    finally:
        os.close(descriptor)


def _rename(state: _Replay, it: Operation) -> None:
    destination = it.destination or ""
    if it.raw.startswith("/"):
        _arrive(state, it)
    elif destination.startswith("/"):
        _depart(state.path(it.raw))
    elif it.flags & _EXCHANGE:
        if _libc.renameat2(-100, state.path(it.raw), -100, state.path(destination), _EXCHANGE):
            raise _failure("renameat2")
    else:
        os.rename(state.path(it.raw), state.path(destination))


def _link(state: _Replay, it: Operation) -> None:
    destination = it.destination or ""
    if it.raw.startswith("/"):
        _arrive(state, it)
    elif not destination.startswith("/"):
        follow = state.file(it) is not None
        source, to = state.reach(it), state.path(destination)
        if _libc.linkat(-100, source, -100, to, 0x400 if follow else 0):
            raise _failure("linkat")


def _arrive(state: _Replay, it: Operation) -> None:
    """A file moved in from outside the roots, whose content the trace holds."""
    path = state.path(it.destination or "")
    if os.path.lexists(path) and not os.path.isdir(path):
        os.unlink(path)
    if stat.S_ISDIR(it.mode):
        if not os.path.isdir(path):
            os.mkdir(path, stat.S_IMODE(it.mode))
    elif stat.S_ISLNK(it.mode):
        os.symlink(it.data or b"", path)
    else:
        if it.data is None:
            raise ValueError(f"the trace has no data for {it.address}: record it with keep_data")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IMODE(it.mode)), "wb") as file:
            file.write(it.data)


def _depart(path: bytes) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _failure(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


_ACTIONS: dict[str, Callable[[_Replay, Operation], None]] = {
    "open_write": _open,
    "open_read": _open_read,
    "close": _close,
    "write": _write,
    "fallocate": _fallocate,
    "rename": _rename,
    "link": _link,
    "truncate": lambda state, it: os.truncate(state.reach(it), it.length or 0),
    "ftruncate": lambda state, it: os.truncate(state.reach(it), it.length or 0),
    "symlink": lambda state, it: os.symlink(bytes_of(it.destination or ""), state.path(it.raw)),
    "unlink": lambda state, it: os.unlink(state.path(it.raw)),
    "mkdir": lambda state, it: os.mkdir(state.path(it.raw), it.mode),
    "rmdir": lambda state, it: os.rmdir(state.path(it.raw)),
    "chmod": lambda state, it: os.chmod(state.reach(it), it.mode),
}
"""Operations that change storage; the others are left out."""
