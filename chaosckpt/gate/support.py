"""Whether the gate works here, really tried: a child puts itself under it, and one of its calls is seen, read and answered.

Run as `python -m chaosckpt.gate.support`: it prints one JSON object. A process of its own, because a filter can't be taken off.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import select
import signal
import socket

import msgspec

from chaosckpt.gate import syscalls as k
from chaosckpt.gate.install import install
from chaosckpt.gate.memory import ProcessMemory

PATIENCE_SECONDS = 20
ANSWER = errno.EXDEV
"""What mkdir never says by itself."""
PROBE_PATH = b"/proc/chaosckpt-probe"
"""Nobody can make it, not even when the call goes through."""


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out. `wait_killable` needs Linux 5.19; `problem` is empty when everything worked."""

    works: bool
    wait_killable: bool = False
    tracked_descriptors: int = 0
    problem: str = ""


def probe() -> Probe:
    """Try it with a forked child, which ends before this returns."""
    signal.alarm(PATIENCE_SECONDS)
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        _under_the_gate(theirs)
    theirs.close()
    try:
        return _supervise(ours)
    finally:
        ours.close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        signal.alarm(0)


def _under_the_gate(connection: socket.socket) -> None:
    """The child: install, hand over the listener, make one call, tell its error number. Never returns."""
    try:
        installed = install()
    except OSError as error:
        connection.send(b"-" + str(error).encode())
        os._exit(1)
    facts = f"+{int(installed.wait_killable)} {installed.limit - installed.base}".encode()
    socket.send_fds(connection, [facts], [installed.listener])
    os.close(installed.listener)
    connection.recv(1)
    seen = 0
    try:
        os.mkdir(PROBE_PATH)
    except OSError as error:
        seen = error.errno or 0
    connection.send(bytes([seen]))
    os._exit(0)


def _supervise(connection: socket.socket) -> Probe:
    message, descriptors, _, _ = socket.recv_fds(connection, 4096, 1)
    if not message.startswith(b"+") or not descriptors:
        return Probe(works=False, problem=message[1:].decode() or "the child ended before it was under the gate")
    killable, span = map(int, message[1:].split())
    listener = descriptors[0]
    try:
        connection.send(b"g")
        problem = _answer_calls(listener, connection)
    except OSError as error:
        problem = f"a call could not be read or answered: {error}"
    finally:
        os.close(listener)
    return Probe(works=not problem, problem=problem, wait_killable=killable == 1, tracked_descriptors=span)


def _answer_calls(listener: int, connection: socket.socket) -> str:
    """Answer calls until the child tells what it saw. Returns the problem, or nothing."""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(connection, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll(PATIENCE_SECONDS * 1000)}
        if connection.fileno() in ready:
            told = connection.recv(1)
            return (
                ""
                if told == bytes([ANSWER])
                else "the supervisor can't read the memory of its child (process_vm_readv)"
            )
        if listener not in ready:
            return f"no call was notified within {PATIENCE_SECONDS} seconds"
        buffer = ctypes.create_string_buffer(k.NOTIFICATION.size)
        fcntl.ioctl(listener, k.NOTIFY_RECEIVE, buffer)
        identity, pid, _, _, _, _, *arguments = k.NOTIFICATION.unpack(buffer.raw)
        ours = any(_points_at_probe(pid, argument) for argument in arguments[:2])
        answer = (identity, 0, -ANSWER, 0) if ours else (identity, 0, 0, k.ANSWER_CONTINUE)
        fcntl.ioctl(listener, k.NOTIFY_SEND, k.ANSWER.pack(*answer))


def _points_at_probe(pid: int, address: int) -> bool:
    """Whether the argument is the path of our own mkdir: also the proof that the child's memory can be read."""
    try:
        return ProcessMemory().read(pid, address, len(PROBE_PATH)) == PROBE_PATH
    except OSError:
        return False


if __name__ == "__main__":
    print(msgspec.json.encode(probe()).decode())  # noqa: T201 - the answer to the parent
