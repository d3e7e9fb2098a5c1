"""The fork server: a warm, single-threaded parent from which ranks are forked in milliseconds.

Run as `python -m chaosckpt.engine.fork_server FD`, where FD is its end of the node's channel. It imports torch and whatever else a rank
imports in its life (found by rehearsal: a forked child lives one whole life and reports its modules), asserts that it still has one
thread, and then forks a rank for each request. It dies with its node, and takes its ranks with it.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator

import msgspec

from chaosckpt.engine import huge_pages
from chaosckpt.engine.channel import Channel
from chaosckpt.engine.lineage import die_with_parent, ended_children, kill_trees
from chaosckpt.engine.messages import Forked, NodeSettings, Ready, Reaped

COLLAPSING_PAYS = 16
"""Forks after which this server is taken for one that will fork many more."""


def prepare_environment() -> None:
    """What must be true before torch is imported in a parent of ranks: no CUDA, one thread."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["OMP_NUM_THREADS"] = "1"


def serve(channel: Channel) -> None:
    """Fork ranks on request until the node closes the channel; then kill what still runs."""
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
                        idle_work = huge_pages.collapsing()
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
        _become_rank(channel, parent, descriptors, private)
    for descriptor in descriptors:
        os.close(descriptor)
    alive.add(pid)
    channel.send(Forked(pid))
    return True


def _become_rank(channel: Channel, parent: int, descriptors: list[int], private: tuple[int, ...]) -> None:
    """In the forked child: never returns."""
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
    from chaosckpt.engine import rank

    rank.run(socket.socket(fileno=connection))


def _reap(channel: Channel, alive: set[int]) -> None:
    for pid, status in ended_children():
        alive.discard(pid)
        channel.send(Reaped(pid, status))


def main() -> None:
    """Warm up, say Ready, serve."""
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    die_with_parent(os.getppid())
    settings = msgspec.msgpack.decode(channel.receive(), type=NodeSettings)
    sys.path[:0] = [entry for entry in settings.import_path if entry not in sys.path]
    prepare_environment()
    from chaosckpt.engine import warm

    answer = warm.up(settings)
    gc.collect()
    gc.freeze()
    channel.send(answer)
    if isinstance(answer, Ready) and settings.launch == "fork":
        die_with_parent(None)  # from here on the end of the channel tells, and leaves time to take the ranks along
        serve(channel)


if __name__ == "__main__":
    main()
