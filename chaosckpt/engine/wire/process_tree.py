"""The process tree: who started whom, since when, and which process dies with which, so that nothing outlives the harness."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable, Iterator, Set

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """Have the kernel SIGKILL this process when `parent`, which must be its parent, ends.

    Exits at once when the parent is gone already.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def wake_when_parent_ends() -> None:
    """Have the kernel SIGCONT this process when its parent ends: one that was stopped learns, too, that its channel has ended."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (a subreaper), so that all can be found and reaped."""
    if _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def ended_children() -> Iterator[tuple[int, int]]:
    """Reap every child that has ended, adopted ones included: (process, wait status) of each. Waits for none."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status


def orphans(session: int) -> list[int]:
    """What a process that has ended and that led this session has left behind, as far as this process has adopted it."""
    found = []
    for child in _children():
        try:
            if os.getsid(child) == session:
                found.append(child)
        except ProcessLookupError:
            continue
    return found


def adopted(known: Set[int]) -> list[int]:
    """Every child of this process but those it knows: left behind by what it started, in whatever session."""
    return [child for child in _children() if child not in known]


def _children() -> Iterator[int]:
    """This process's children; none on a kernel that doesn't list them."""
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children", encoding="ascii") as children:
                yield from map(int, children.read().split())
        except OSError:
            continue


def kill_trees(roots: Iterable[int]) -> None:
    """SIGKILL these processes and all their descendants, those included that are forked meanwhile."""
    for root in roots:
        killed: set[int] = set()
        while True:
            tree = [pid for pid in descendants(root) if pid not in killed]
            if not tree:
                break
            for pid in tree:
                killed.add(pid)
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue


def descendants(pid: int) -> list[int]:
    """A process and all that it started, directly or not, as far as they are not orphaned; parents first."""
    found, waiting = [], [pid]
    while waiting:
        current = waiting.pop()
        found.append(current)
        try:
            tasks = os.listdir(f"/proc/{current}/task")
        except OSError:
            continue
        for task in tasks:
            try:
                with open(f"/proc/{current}/task/{task}/children") as stream:
                    waiting.extend(int(child) for child in stream.read().split())
            except OSError:
                continue
    return found


def started(pid: int) -> str:
    """When a process began, in the kernel's ticks since boot; empty when there is none of that number, or only its remains."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
