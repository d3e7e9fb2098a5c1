"""How a rank puts itself under the gate: the band of descriptor numbers, the filter with its listener, and the handshake with its node.

Runs in the rank, before it starts a thread. The filter is inherited by every child.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import socket
import struct
from typing import NamedTuple

import msgspec

from chaosckpt.gate import syscalls as k
from chaosckpt.gate.program import build_program

_HIGHEST_LIMIT = 16384
"""Descriptor tables grow to their highest number and every fork copies them: the band stays low enough to be cheap."""
_WIDEST_SPAN = 2048


class Installed(NamedTuple):
    """A filter in force: its listener, the band [base, limit), and whether only death interrupts a notified call."""

    listener: int
    base: int
    limit: int
    wait_killable: bool


def choose_band(hard: int) -> tuple[int, int]:
    """[base, limit) for tracked descriptors under a hard RLIMIT_NOFILE: at most 2048 numbers and half of the limit."""
    ceiling = _HIGHEST_LIMIT if hard == resource.RLIM_INFINITY else min(hard, _HIGHEST_LIMIT)
    return ceiling - min(_WIDEST_SPAN, ceiling // 2), ceiling


def install(*, wait_killable: bool = True, low_descriptors: bool = False, network: bool = False) -> Installed:
    """Put the calling thread, and all that it will start, under the gate. Needs no privilege.

    Raises OSError: ENOSYS where the architecture or the kernel has no notifications, EBUSY where the process is under a
    supervisor already, EPERM or EACCES where a sandbox forbids it.
    """
    if k.MACHINE not in k.TABLES:
        raise OSError(errno.ENOSYS, f"the gate knows x86_64 and aarch64, not {k.MACHINE}")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    base, limit = choose_band(hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    if libc.prctl(k.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")
    program = build_program(base, limit, low_descriptors=low_descriptors, network=network)
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(instructions))
    argument = ctypes.create_string_buffer(header, len(header))
    for killable in (True, False) if wait_killable else (False,):
        flags = k.FILTER_NEW_LISTENER | (k.FILTER_WAIT_KILLABLE_RECV if killable else 0)
        listener = libc.syscall(k.NUMBERS["seccomp"], k.SET_MODE_FILTER, flags, argument)
        if listener >= 0:
            return Installed(listener, base, limit, killable)
        if ctypes.get_errno() != errno.EINVAL:
            break  # EINVAL alone means a kernel before 5.19, which has the listener without the flag.
    number = ctypes.get_errno()
    raise OSError(number, f"seccomp(SET_MODE_FILTER): {os.strerror(number)}")


def pass_gate(connection: socket.socket, *, low_descriptors: bool = False, network: bool = False) -> None:
    """Put this process, and all that it will start, under the gate of the node at the other end of `connection`.

    Ends the process when the node is gone. Raises OSError as `install` does.
    """
    installed = install(low_descriptors=low_descriptors, network=network)
    payload = msgspec.msgpack.encode((installed.base, installed.limit, installed.wait_killable))
    socket.send_fds(connection, [payload], [installed.listener])
    os.close(installed.listener)
    if connection.recv(1) != b"g":
        os._exit(1)
