"""Calls that change what a file is, not what it holds: owner, times, extended attributes, flags. Refused outside the fence.

Beside them stand the calls that reach what is no file: message queues, and the memory of other processes. Inside the roots the
kernel performs all of them untraced.
"""

from __future__ import annotations

import errno
import os

from chaosckpt.gate import kernel
from chaosckpt.gate import syscalls as k
from chaosckpt.gate.call import CONTINUE, Call, Reply
from chaosckpt.gate.tree import Handler, Tree

_QUEUES = b"/dev/mqueue/"


def _by_path(doing: str, *, follow: bool = True) -> Handler:
    """Of a call with the path as its first argument."""

    def handler(tree: Tree, call: Call) -> Reply:
        return CONTINUE if tree.guard is None else _at(tree, call, None, 0, doing, follow)

    return handler


def _by_directory(doing: str, flags: int | None = None) -> Handler:
    """Of a call with (directory, path, ...), and its AT_ flags at an argument. Without a path it means the descriptor."""

    def handler(tree: Tree, call: Call) -> Reply:
        if tree.guard is None:
            return CONTINUE
        chosen = 0 if flags is None else call.word(flags)
        if not call.arguments[1] or (chosen & k.AT_EMPTY_PATH and not tree.text(call, 1)):
            if call.descriptor(0) == k.AT_FDCWD:
                return CONTINUE if not call.arguments[1] else _change(tree, _directory(call), doing)
            return tree.outside_descriptor(call, 0, doing)
        return _at(tree, call, 0, 1, doing, not chosen & k.AT_SYMLINK_NOFOLLOW)

    return handler


def _by_descriptor(doing: str) -> Handler:
    return lambda tree, call: tree.outside_descriptor(call, 0, doing)


def _at(tree: Tree, call: Call, directory: int | None, path: int, doing: str, follow: bool) -> Reply:
    place = tree.place(call, directory, path, follow=follow)
    return CONTINUE if place.raw is not None else tree.outside(place.path, doing)


def _change(tree: Tree, path: bytes, doing: str) -> Reply:
    return CONTINUE if tree.resolver.raw(path) is not None else tree.outside(path, doing)


def _directory(call: Call) -> bytes:
    return os.readlink(b"/proc/%d/task/%d/cwd" % (call.process.pid, call.tid))


def _ioctl(tree: Tree, call: Call) -> Reply:
    """The filter asks about those only that set a file's flags, as chattr does."""
    return tree.outside_descriptor(call, 0, "change of flags")


def _open_queue(tree: Tree, call: Call) -> Reply:
    """mq_open(2): whoever may only read another's queue takes messages away from it."""
    guard = tree.guard
    if guard is None:
        return CONTINUE
    name = tree.text(call, 0)
    path = _QUEUES + name
    if guard.allows(path):
        return CONTINUE
    if not kernel.queue_exists(name):
        return CONTINUE if not call.word(1) & os.O_CREAT or guard.may_make(path) else -errno.EACCES
    guard.refuse(path, "open")
    return -errno.EACCES


def _remove_queue(tree: Tree, call: Call) -> Reply:
    guard = tree.guard
    if guard is None:
        return CONTINUE
    name = tree.text(call, 0)
    path = _QUEUES + name
    if guard.allows(path) or not kernel.queue_exists(name):
        guard.made.discard(path)
        return CONTINUE
    guard.refuse(path, "unlink")
    return -errno.EACCES


def _ptrace(tree: Tree, call: Call) -> Reply:
    """ptrace(2): (request, thread, ...)."""
    return CONTINUE if call.word(0) == k.PTRACE_TRACEME else _into(tree, call.word(1), "ptrace")


def _write_memory(tree: Tree, call: Call) -> Reply:
    """process_vm_writev(2): (process, ...)."""
    return _into(tree, call.word(0), "process_vm_writev")


def _into(tree: Tree, pid: int, doing: str) -> Reply:
    """A command holds all its ranks in one tree; those of a target are trees of their own, and may share memory."""
    if tree.guard is None or tree.processes.owns(pid) or not os.path.exists(f"/proc/{pid}"):
        return CONTINUE
    tree.refused(f"{doing} of a process that is none of the job's")
    return -errno.EPERM


HANDLERS: dict[str, Handler] = {
    "chown": _by_path("chown"),
    "lchown": _by_path("chown", follow=False),
    "fchown": _by_descriptor("chown"),
    "fchownat": _by_directory("chown", flags=4),
    "utime": _by_path("utime"),
    "utimes": _by_path("utime"),
    "futimesat": _by_directory("utime"),
    "utimensat": _by_directory("utime", flags=3),
    "setxattr": _by_path("setxattr"),
    "lsetxattr": _by_path("setxattr", follow=False),
    "fsetxattr": _by_descriptor("setxattr"),
    "setxattrat": _by_directory("setxattr", flags=2),
    "removexattr": _by_path("removexattr"),
    "lremovexattr": _by_path("removexattr", follow=False),
    "fremovexattr": _by_descriptor("removexattr"),
    "removexattrat": _by_directory("removexattr", flags=2),
    "file_setattr": _by_directory("change of flags", flags=4),
    "ioctl": _ioctl,
    "mq_open": _open_queue,
    "mq_unlink": _remove_queue,
    "ptrace": _ptrace,
    "process_vm_writev": _write_memory,
}
