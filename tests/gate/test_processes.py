"""Tests of the processes of a tree."""

from __future__ import annotations

import os
import signal

import pytest

from chaosckpt.gate import processes
from chaosckpt.gate.processes import Process, Processes


@pytest.mark.parametrize("listed", [True, False])
def test_children_are_found_and_the_dead_forgotten(monkeypatch: pytest.MonkeyPatch, *, listed: bool) -> None:
    """A fork by a known thread makes it look for children, with the kernel's list of them or without."""
    monkeypatch.setattr(processes, "_KERNEL_LISTS_CHILDREN", listed)
    born: list[Process] = []
    tree = Processes(born.append)
    me = tree.of(os.getpid())
    assert (tree.root, tree.several, tree.discover()) == (os.getpid(), False, [me])
    tree.forking.add(os.getpid())
    child = os.fork()
    if not child:
        signal.pause()
        os._exit(0)
    try:
        assert tree.of(os.getpid()) is me
        assert not tree.forking
        assert child in tree.alive
        assert tree.role(child, tree.alive[child]) == "child"
        assert tree.role(os.getpid(), me) == "main"
        assert tree.role(os.getpid() + 1, me) == "thread"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    tree.died(tree.alive[child])
    assert child not in tree.alive
    with pytest.raises(OSError, match="No such"):
        tree.of(child)
    tree.close()
    assert [process.pid for process in born][:1] == [os.getpid()]
