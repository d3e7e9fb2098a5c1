"""The fork server: a warm, single-threaded parent from which ranks are forked in milliseconds.

Run as `python -m chaosckpt.engine.forkserver.server FD`, where FD is its end of the node's channel. It imports torch and
whatever else a rank imports in its life (found by rehearsal: a forked child lives one whole life and reports its modules),
asserts that it still has one thread, and then forks a rank for each request. It dies with its node, and takes its ranks with it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator

import msgspec

from chaosckpt.engine.forkserver.imports import import_for_command
from chaosckpt.engine.rank import main as rank
from chaosckpt.engine.wire.channel import Channel
from chaosckpt.engine.wire.orders import Forked, NodeSettings, Ready, Reaped, Refused
from chaosckpt.engine.wire.process_tree import die_with_parent, ended_children, kill_trees, wake_when_parent_ends

COLLAPSING_PAYS = 16
"""Forks after which this server is taken for one that will fork many more."""


_MADV_COLLAPSE = 25
_HUGE_BYTES = 2 << 20


class Child(Exception):
    """Raised in a forked child, which is to run its program at the top level of its process."""

    def __init__(self, connection: socket.socket, *, keeps_store: bool) -> None:
        super().__init__("a forked child")
        self.connection = connection
        self.keeps_store = keeps_store


def prepare_environment() -> None:
    """What must be true before torch is imported in a parent of ranks: no CUDA, one thread."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["OMP_NUM_THREADS"] = "1"


def serve(channel: Channel) -> None:
    """Fork on request until the node closes the channel; then kill what still runs. Raises Child in a child."""
    wakeup_read, wakeup_write = os.pipe()
    for end in (wakeup_read, wakeup_write):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    poll.register(wakeup_read, select.POLLIN)
    alive: set[int] = set()
    forks = 0
    idle_work: Iterator[int] = iter(())
    try:
        while True:
            for descriptor, _ in _ready(poll, idle_work):
                if descriptor == wakeup_read:
                    os.read(wakeup_read, 4096)
                    _reap(channel, alive)
                elif not _fork_one(channel, alive, (wakeup_read, wakeup_write)):
                    return
                else:
                    forks += 1
                    if forks == COLLAPSING_PAYS:
                        idle_work = collapsing()
    finally:
        kill_trees(alive)


def _ready(poll: select.poll, idle_work: Iterator[int]) -> list[tuple[int, int]]:
    """What there is to do next; as long as there is nothing, idle work goes on step by step."""
    while not (ready := poll.poll(0)):
        if next(idle_work, None) is None:
            return poll.poll()
    return ready


def _fork_one(channel: Channel, alive: set[int], private: tuple[int, ...]) -> bool:
    """Take one request. False when the node has closed the channel."""
    data, descriptors, _, _ = socket.recv_fds(channel.connection, 1, 2)
    if not data:
        return False
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        alive.clear()  # none of them is this one's child
        raise Child(_prepared_child(channel, parent, descriptors, private), keeps_store=data == b"s")
    for descriptor in descriptors:
        os.close(descriptor)
    alive.add(pid)
    channel.send(Forked(pid))
    return True


def _prepared_child(channel: Channel, parent: int, descriptors: list[int], private: tuple[int, ...]) -> socket.socket:
    """In the forked child: its own session, output and connection."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    channel.close()
    for descriptor in private:
        os.close(descriptor)
    connection, log = descriptors
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.setsid()
    die_with_parent(parent)
    return socket.socket(fileno=connection)


def keep_store(connection: socket.socket) -> None:
    """Answer each request with the port of a new store by which ranks can meet, until the node closes the connection.

    It replaces the one before, in which the keys of an earlier launch would still lie. As torchrun's agent does, this process
    outlives every rank, rank 0 too.
    """
    from torch._C._distributed_c10d import TCPStore

    store = None
    while connection.recv(1):
        del store
        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        connection.sendall(str(store.port).encode())
    os._exit(0)


def collapsing() -> Iterator[int]:
    """Put this process's private writable memory into huge pages, one a step; yields the address of each page so tried.

    In few large pages, a fork copies, and an exit frees, few page-table entries.

    Nothing but speed depends on it. A kernel before 6.1, or one without huge pages, refuses, and all stays as it is.
    """
    madvise = ctypes.CDLL(None, use_errno=True).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for first, end in _writable():
        for address in range(-(-first // _HUGE_BYTES) * _HUGE_BYTES, end - _HUGE_BYTES + 1, _HUGE_BYTES):
            madvise(address, _HUGE_BYTES, _MADV_COLLAPSE)
            yield address


def _writable() -> list[tuple[int, int]]:
    """[first, end) of each private writable mapping that no file is behind."""
    found = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            bounds, mode, _, _, _, *behind = line.split()
            if mode == "rw-p" and behind in ([], ["[heap]"]):
                first, end = (int(number, 16) for number in bounds.split("-"))
                found.append((first, end))
    return found


def _reap(channel: Channel, alive: set[int]) -> None:
    for pid, status in ended_children():
        alive.discard(pid)
        channel.send(Reaped(pid, status))


def main() -> None:
    """Warm up, say Ready, serve. Returns in the parent when the node is gone, in a child when its script has ended."""
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    die_with_parent(os.getppid())
    settings = msgspec.msgpack.decode(channel.receive(), type=NodeSettings)
    cold_path = tuple(sys.path)
    sys.path[:0] = [entry for entry in settings.import_path if entry not in sys.path]
    prepare_environment()
    answer = _warm_up(settings)
    gc.collect()
    gc.freeze()
    channel.send(answer)
    command = settings.command
    if isinstance(answer, Ready) and settings.launch == "fork" and (command is None or command.warm):
        wake_when_parent_ends()  # from here on the end of the channel tells, and leaves time to take the ranks along
        try:
            serve(channel)
            return
        except Child as child:
            connection, keeps_store = child.connection, child.keeps_store
        if keeps_store:
            keep_store(connection)
        else:
            rank.run(connection, cold_path)


def _warm_up(settings: NodeSettings) -> Ready | Refused:
    """Late imports: a command's ranks must find nothing imported that the command didn't import itself."""
    if settings.command is not None:
        return import_for_command(settings)
    from chaosckpt.engine.forkserver import warm_up

    return warm_up.up(settings)


if __name__ == "__main__":
    main()
