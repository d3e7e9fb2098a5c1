"""What a node sees of a set of processes at one instant, from the kernel's counters: how each thread waits, and what its sockets hold.

Whether the processes can go no further by themselves is told by comparing such samples (chaosckpt/engine/runner/quiescence.py).
"""

from __future__ import annotations

import os
import platform
import socket
import struct
from collections.abc import Iterable, Sequence, Set

from chaosckpt.engine.wire.requests import Sample, Socket, ThreadSeen, Waits
from chaosckpt.gate.syscalls import NUMBERS

_X86_64 = {
    "read": 0, "poll": 7, "select": 23, "pause": 34, "nanosleep": 35, "accept": 43, "recvfrom": 45, "recvmsg": 47, "wait4": 61,
    "flock": 73, "sigtimedwait": 128, "sigsuspend": 130, "futex": 202, "clock_nanosleep": 230, "epoll_wait": 232, "waitid": 247,
    "pselect6": 270, "ppoll": 271, "epoll_pwait": 281, "accept4": 288, "recvmmsg": 299, "epoll_pwait2": 441, "futex_waitv": 449,
}  # fmt: skip
_AARCH64 = {
    "epoll_pwait": 22, "flock": 32, "read": 63, "pselect6": 72, "ppoll": 73, "waitid": 95, "futex": 98, "nanosleep": 101,
    "clock_nanosleep": 115, "sigsuspend": 133, "sigtimedwait": 137, "accept": 202, "recvfrom": 207, "recvmsg": 212, "accept4": 242,
    "recvmmsg": 243, "wait4": 260, "epoll_pwait2": 441, "futex_waitv": 449,
}  # fmt: skip
_WAITS = _X86_64 if platform.machine() == "x86_64" else _AARCH64
_NAMES = {number: name for name, number in _WAITS.items()}
_CALLS = {number: name for name, number in NUMBERS.items()} | _NAMES
_POLLING = frozenset(_WAITS[name] for name in ("epoll_wait", "epoll_pwait") if name in _WAITS)
_SHORT_POLL_MS = 1000

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST_DUMP = 0x301
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_INET_DIAG_INFO = 2
_TCP_TIME_WAIT, _TCP_CLOSE_WAIT, _TCP_LISTEN = 6, 8, 10
_STATES = 0xFFF & ~(1 << _TCP_TIME_WAIT | 1 << _TCP_LISTEN)
"""Those in which a socket can be some process's and move bytes. Of past trials, hundreds of sockets are in TIME_WAIT."""
_HEADER = struct.Struct("=IHHII")
_BYTES_ACKED_OFFSET = 120  # of tcpi_bytes_acked, followed by tcpi_bytes_received, in struct tcp_info


class SocketCounters:
    """Queues and byte counters of TCP sockets, asked from the kernel through one netlink socket."""

    def __init__(self) -> None:
        self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)

    def of(self, processes: Sequence[Set[int]]) -> list[Socket]:
        """The rows of each process's sockets, sorted. Listeners are left out, and connections of a process with itself.

        A process that waits for others to join it may poll its own store all the while: its threads tell whether it is at rest.
        """
        owners = {inode: number for number, inodes in enumerate(processes) for inode in inodes}
        found: dict[tuple[int, int, int], Socket] = {}
        if not owners:
            return []
        for family in (socket.AF_INET, socket.AF_INET6):
            body = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), 0, _STATES)
            header = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST_DUMP, 1, 0)
            self._netlink.send(header + body)
            for row, port, peer in self._dump():
                if row[0] in owners:
                    found[owners[row[0]], port, peer] = row
        return sorted(row for (owner, port, peer), row in found.items() if (owner, peer, port) not in found)

    def _dump(self) -> Iterable[tuple[Socket, int, int]]:
        while True:
            reply, offset = self._netlink.recv(1 << 18), 0
            while offset + _HEADER.size <= len(reply):
                length, kind, *_ = _HEADER.unpack_from(reply, offset)
                if kind in (_NLMSG_DONE, _NLMSG_ERROR):
                    return
                row = _parse(reply, offset, length)
                if row is not None:
                    yield row
                offset += (length + 3) & ~3

    def close(self) -> None:
        self._netlink.close()


def _parse(reply: bytes, offset: int, length: int) -> tuple[Socket, int, int] | None:
    """One struct inet_diag_msg with its attributes (linux/inet_diag.h), its own port and its peer's."""
    message = offset + _HEADER.size
    state = reply[message + 1]
    if state == _TCP_LISTEN:
        return None
    port, peer = struct.unpack_from("!HH", reply, message + 4)
    _, receive_queue, send_queue, _, inode = struct.unpack_from("=IIIII", reply, message + 52)
    attribute, acknowledged, received = message + 72, 0, 0
    while attribute + 4 <= offset + length:
        size, kind = struct.unpack_from("=HH", reply, attribute)
        if kind == _INET_DIAG_INFO and size >= 4 + _BYTES_ACKED_OFFSET + 16:
            acknowledged, received = struct.unpack_from("=QQ", reply, attribute + 4 + _BYTES_ACKED_OFFSET)
        attribute += max(4, (size + 3) & ~3)
    return (inode, state, receive_queue, send_queue, acknowledged, received), port, peer


def sockets_of(pid: int) -> set[int]:
    """Inodes of the sockets that a process has open; empty when it is gone."""
    directory = f"/proc/{pid}/fd"
    inodes: set[int] = set()
    try:
        names = os.listdir(directory)
    except OSError:
        return inodes
    for name in names:
        try:
            link = os.readlink(f"{directory}/{name}")
        except OSError:
            continue
        if link.startswith("socket:["):
            inodes.add(int(link[8:-1]))
    return inodes


def _line(path: str) -> bytes:
    """The one line of a file in /proc. A sample reads dozens, and a file object takes three times as long as a descriptor."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


_SLEEPS = frozenset(("nanosleep", "clock_nanosleep"))
_TIMEOUTS = {"futex": 4, "select": 5, "pselect6": 5, "ppoll": 3, "epoll_pwait2": 4, "recvmmsg": 5, "sigtimedwait": 3}
"""In which field of /proc's line a waiting call has a pointer to its timeout."""


def seen(pid: int, held: Set[int]) -> list[ThreadSeen]:
    """Each thread of a process, `held` being those that the gate holds; none when it is gone, or a zombie."""
    rows: list[ThreadSeen] = []
    directory = f"/proc/{pid}/task"
    try:
        names = os.listdir(directory)
    except OSError:
        return rows
    for name in names:
        thread = int(name)
        try:
            cpu = int(_line(f"{directory}/{name}/schedstat").split()[0])
            call = [] if thread in held else _line(f"{directory}/{name}/syscall").split()
        except OSError:
            continue  # this thread ended between the listing and the sample
        if thread in held:
            rows.append(ThreadSeen(thread, cpu, "wait"))
        elif call[0] != b"-1":  # blocked outside of any system call: a zombie
            waits = how_it_waits(call)
            place = b" ".join((call[0], *call[-2:])).decode() if waits in ("timed", "asleep", "wait") else ""
            rows.append(ThreadSeen(thread, None if waits == "polls" else cpu, waits, place))
    return rows


def how_it_waits(call: list[bytes]) -> Waits:
    """How a thread waits whose line in /proc/PID/task/TID/syscall has these words: the call, its arguments, two pointers."""
    if call[0] == b"running":
        return "running"
    number = int(call[0])
    name = _NAMES.get(number)
    if name is None:
        return "busy"
    if number in _POLLING and 0 <= int(call[4], 16) <= _SHORT_POLL_MS:
        return "polls"
    # poll and epoll_wait have a number of milliseconds (negative: none), the others a pointer (none: no timeout).
    milliseconds = {"poll": 3, "epoll_wait": 4, "epoll_pwait": 4}.get(name)
    if milliseconds is not None:
        timed = int(call[milliseconds], 16) & 0x80000000 == 0
    else:
        timed = name in _TIMEOUTS and int(call[_TIMEOUTS[name]], 16) != 0
    descriptors = {"select": 1, "pselect6": 1, "poll": 2, "ppoll": 2}.get(name)
    if name in _SLEEPS or (timed and descriptors is not None and int(call[descriptors], 16) == 0):
        return "asleep"
    return "timed" if timed else "wait"


def describe(tid: int) -> str:
    """What a thread is called, and what it does, for a sentence: `thread "python3" in clock_nanosleep`."""
    try:
        name = _line(f"/proc/{tid}/comm").decode(errors="replace").strip()
        call = _line(f"/proc/{tid}/syscall").split()
    except OSError:
        return "a thread that has ended"
    if call[0] == b"running":
        return f'thread "{name}", which runs'
    number = int(call[0])
    return f'thread "{name}", in {_CALLS.get(number, f"system call {number}")}'


def sample(processes: Iterable[tuple[int, Set[int]]], counters: SocketCounters, operations: int, caller: int) -> Sample:
    """What is seen of (process, threads held by the gate); `operations` got somewhere so far, the last one of thread `caller`."""
    listed = list(processes)
    sockets = counters.of([sockets_of(pid) for pid, _ in listed])
    # What a peer that has closed left behind may lie unread for ever (its FIN counts as a byte); nothing more will come.
    pending = any((receive and state != _TCP_CLOSE_WAIT) or send for _, state, receive, send, _, _ in sockets)
    threads = [row for pid, held in listed for row in seen(pid, held)]
    return Sample(tuple(sorted(threads)), tuple(sockets), pending, operations, caller)
