"""System calls that Python has no function for, as functions that raise OSError."""

from __future__ import annotations

import ctypes
import errno
import os

from chaosckpt.gate import syscalls as k

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.process_vm_readv.restype = ctypes.c_ssize_t
libc.process_vm_writev.restype = ctypes.c_ssize_t

_long = ctypes.c_long


def fail(what: str) -> OSError:
    """The OSError of the C call that has just failed."""
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def _call(name: str, *arguments: ctypes._SimpleCData[int] | ctypes._SimpleCData[bytes | None]) -> int:
    if name not in k.NUMBERS:
        raise OSError(errno.ENOSYS, name)
    result: int = libc.syscall(_long(k.NUMBERS[name]), *arguments)
    if result < 0:
        raise fail(name)
    return result


def renameat2(source: bytes, destination: bytes, flags: int) -> None:
    """renameat2(2) on two canonical paths."""
    _call(
        "renameat2",
        _long(-100),
        ctypes.c_char_p(source),
        _long(-100),
        ctypes.c_char_p(destination),
        ctypes.c_uint(flags),
    )


def fallocate(descriptor: int, mode: int, offset: int, length: int) -> None:
    """fallocate(2)."""
    _call("fallocate", _long(descriptor), _long(mode), _long(offset), _long(length))


def fchmodat2(path: bytes, mode: int, flags: int) -> None:
    """fchmodat2(2) on a canonical path; ENOSYS before Linux 6.6."""
    _call("fchmodat2", _long(-100), ctypes.c_char_p(path), ctypes.c_uint(mode), ctypes.c_uint(flags))


def release(descriptor: int, length: int) -> None:
    """Give the space of the first bytes of an open file back; its size stays (fallocate with FALLOC_FL_PUNCH_HOLE)."""
    if libc.fallocate(descriptor, k.PUNCH_HOLE | k.KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(length)):
        raise fail("fallocate")


def queue_exists(name: bytes) -> bool:
    """Whether there is a POSIX message queue of this name (without its slash), be it readable or not."""
    try:
        os.close(_call("mq_open", ctypes.c_char_p(name), ctypes.c_int(os.O_RDONLY | os.O_CLOEXEC), _long(0), _long(0)))
    except OSError as error:
        return error.errno not in (errno.ENOENT, errno.ENOSYS)
    return True


def remove_queue(name: bytes) -> None:
    """mq_unlink(2), of a name without its slash."""
    _call("mq_unlink", ctypes.c_char_p(name))


def syncfs(descriptor: int) -> None:
    """syncfs(2)."""
    _call("syncfs", _long(descriptor))


def pidfd_getfd(pidfd: int, number: int) -> int:
    """Our own descriptor of the open file description that another process has at `number`."""
    return _call("pidfd_getfd", _long(pidfd), _long(number), _long(0))


def link_description(descriptor: int, destination: bytes) -> None:
    """Give a name to an open file, with a name (linkat through /proc) or without (O_TMPFILE)."""
    source = b"/proc/self/fd/%d" % descriptor
    if libc.linkat(-100, source, -100, destination, k.AT_SYMLINK_FOLLOW):
        raise fail("linkat")


def same_description(pid: int, number: int, own: int) -> bool:
    """Does process `pid` have at `number` the open file description that we have at `own`?

    Where kcmp is forbidden (some container profiles) the same file stands for the same description.
    """
    try:
        kind, here, there, theirs = map(_long, (k.KCMP_FILE, os.getpid(), pid, number))
        return _call("kcmp", here, there, kind, _long(own), theirs) == 0
    except OSError as error:
        if error.errno in (errno.EBADF, errno.ESRCH):
            return False
    try:
        found, mine = os.stat(f"/proc/{pid}/fd/{number}"), os.fstat(own)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (mine.st_dev, mine.st_ino)


def same_table(one: int, other: int) -> bool:
    """Do two processes share one table of descriptors (CLONE_FILES)?"""
    try:
        return _call("kcmp", _long(one), _long(other), _long(k.KCMP_FILES), _long(0), _long(0)) == 0
    except OSError:
        return False
