"""Lineage: what a process leaves behind is found by whoever adopts it."""

from __future__ import annotations

import os
import signal

from chaosckpt.engine.wire.process_tree import adopt_orphans, kill_trees, orphans, wake_when_parent_ends


def _adopt() -> bool:
    """In a process of its own, since adopting is for life: a child leads a session, starts one of its own and ends."""
    adopt_orphans()
    told, telling = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        grandchild = os.fork()
        if grandchild == 0:
            signal.pause()
        os.write(telling, str(grandchild).encode())
        os._exit(0)
    os.waitpid(child, 0)
    grandchild = int(os.read(told, 32))
    found = orphans(child) == [grandchild] and orphans(os.getsid(0)) == []
    kill_trees(orphans(child))
    _, status = os.waitpid(grandchild, 0)
    return found and os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def test_what_an_ended_process_started_is_found_and_ends() -> None:
    """Goal: a rank's own processes don't outlive it, also when it ends by itself."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if _adopt() else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_stopped_process_learns_that_its_parent_has_ended() -> None:
    """Goal: a fork server that somebody stopped sees the end of its channel, and ends, when its node has ended."""
    woken, waking = os.pipe()
    parent = os.fork()
    if parent == 0:
        stopped = os.fork()
        if stopped == 0:
            wake_when_parent_ends()
            os.kill(os.getpid(), signal.SIGSTOP)
            os.write(waking, b"w")
            os._exit(0)
        os.waitpid(stopped, os.WUNTRACED)
        os._exit(0)
    os.waitpid(parent, 0)
    os.close(waking)
    assert os.read(woken, 1) == b"w"
    os.close(woken)
