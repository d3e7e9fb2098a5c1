"""The processes of one tree: who calls, who else may hold a descriptor, who has died."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from chaosckpt.model.operation import Role

_MOST_EXECUTIONS = 256
"""Of how many programs that ranks ran it is kept how they were started."""


class Execution(NamedTuple):
    """A program that a rank runs, or has run, as it was started. `rank` is None for one that named no number."""

    pid: int
    rank: int | None
    argv: tuple[str, ...]
    environment: dict[str, str]
    directory: str


class Process:
    """One process of the tree. `gone` are numbers whose close was let through but may not have happened yet.

    `rank` is what its environment says it is when it was executed; None where that says nothing.
    """

    def __init__(self, pid: int, parent: int, pidfd: int, rank: int | None = None) -> None:
        self.pid = pid
        self.rank = rank
        self.parent = parent
        self.pidfd = pidfd
        self.gone: set[int] = set()
        self.exiting = False
        self.executing = False
        self.mask: int | None = None

    def umask(self) -> int:
        """The process's file mode creation mask; a call of umask(2) sets it here too."""
        if self.mask is None:
            self.mask = int(_status(self.pid)["Umask"], 8)
        return self.mask


class Processes:
    """Found by their calls, and as children of those found. A tree that never forked costs nothing to keep."""

    def __init__(self, born: Callable[[Process], None], *, many_ranks: bool = False) -> None:
        """With `many_ranks` the tree may hold several ranks, told apart by their environment."""
        self.root = 0
        self.executions: list[Execution] = []
        """How each process that heads a rank was started, in order, where there may be several."""
        self._many_ranks = many_ranks
        self.alive: dict[int, Process] = {}
        self.forking: set[int] = set()
        self._by_tid: dict[int, Process] = {}
        self._born = born

    @property
    def several(self) -> bool:
        """Can there be a process besides the only one known?"""
        return len(self.alive) > 1 or bool(self.forking)

    def of(self, tid: int) -> Process:
        """The process of a thread. Raises OSError when it has died."""
        process = self._by_tid.get(tid)
        if process is not None and (tid == process.pid or not self.several or _has_thread(process.pid, tid)):
            if tid in self.forking:
                self.discover()  # Its fork has returned: now the child can be found.
                self.forking.discard(tid)
            return process
        status = _status(tid)
        process = self._by_tid[tid] = self._add(int(status["Tgid"]), int(status["PPid"]))
        if not self.root:
            self.root = process.pid
        return process

    def owns(self, pid: int) -> bool:
        """Whether a process or thread belongs to this tree: one of those known, or started by one of them."""
        try:
            status = _status(pid)
            if self._in_own_session(int(status["Tgid"])):
                return True
            while (current := int(status["Tgid"])) not in self.alive:
                if current <= 1:
                    return False
                status = _status(int(status["PPid"]))
        except OSError:
            return False  # it has ended meanwhile
        return True

    def _in_own_session(self, pid: int) -> bool:
        """Whether it is of the session that the tree's first process leads: its descendants, orphaned or not."""
        try:
            return os.getsid(pid) == os.getsid(self.root) == self.root
        except ProcessLookupError:
            return False

    def role(self, tid: int, process: Process) -> Role:
        if process.pid != self.root and not self._heads_a_rank(process):
            return "child"
        return "main" if tid == process.pid else "thread"

    def rank(self, process: Process) -> int | None:
        """The rank that this process is, or belongs to; None where no environment names one."""
        return process.rank if self._many_ranks else None

    def heads(self) -> dict[int, int]:
        """The process of each rank, by rank."""
        living = list(self.alive.values())
        return {
            process.rank: process.pid for process in living if process.rank is not None and self._heads_a_rank(process)
        }

    def executed(self, process: Process) -> None:
        """The process runs another program now, with an environment of its own."""
        if self._many_ranks:
            process.rank = _rank_of(process.pid)
            self._note(process)

    def _note(self, process: Process) -> None:
        """Keep how a process was started that heads a rank. The parent of a rank above 0, if it names no number, is rank 0."""
        parent = self.alive.get(process.parent)
        if (
            process.rank
            and parent is not None
            and parent.rank is None
            and 0 not in self.heads()
            and _variables(process.pid).get(b"RANK") is None
        ):
            parent.rank = 0
            self._keep(parent)
        if self._heads_a_rank(process):
            self._keep(process)

    def _keep(self, process: Process) -> None:
        found = _execution(process)
        if found is not None and found not in self.executions and len(self.executions) < _MOST_EXECUTIONS:
            self.executions.append(found)

    def _heads_a_rank(self, process: Process) -> bool:
        """Whether this process is a rank itself, and no child of one: children inherit the environment."""
        if process.rank is None:
            return False
        parent = self.alive.get(process.parent)
        return parent is None or parent.rank != process.rank

    def discover(self) -> list[Process]:
        """Every living process of the tree, as far as parents lead to children."""
        if not self.several:
            return list(self.alive.values())
        found = list(self.alive.values())
        for process in found:  # Grows while it is walked: children of children.
            for child in _children(process.pid):
                if child not in self.alive:
                    try:
                        found.append(self._add(child, process.pid))
                    except OSError:
                        continue  # It has died in the meantime.
        return found

    def died(self, process: Process) -> None:
        self.alive.pop(process.pid, None)
        threads = [tid for tid, owner in self._by_tid.items() if owner is process]
        for tid in threads:
            del self._by_tid[tid]
        self.forking.difference_update(threads)
        os.close(process.pidfd)

    def close(self) -> None:
        for process in list(self.alive.values()):
            self.died(process)

    def _add(self, pid: int, parent: int) -> Process:
        process = self.alive.get(pid)
        if process is None:
            rank = _rank_of(pid) if self._many_ranks else None
            process = self.alive[pid] = Process(pid, parent, os.pidfd_open(pid), rank)
            self._born(process)
            if rank is not None:
                self._note(process)
        return process


_KERNEL_LISTS_CHILDREN = os.path.exists("/proc/thread-self/children")
"""Some kernels are built without CONFIG_PROC_CHILDREN."""


def _children_by_search(pid: int) -> list[int]:
    """The same from every process's own record of its parent."""
    children = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            continue  # It has ended meanwhile.
        if parent == pid:
            children.append(int(name))
    return children


def _rank_of(pid: int) -> int | None:
    """The number that the environment with which the process was executed gives it; None where it gives none.

    RANK is torchrun's, the next two are those of schedulers; launchers within a script set LOCAL_RANK only.
    """
    variables = _variables(pid)
    for name, world in (
        (b"RANK", None),
        (b"SLURM_PROCID", b"SLURM_NTASKS"),
        (b"OMPI_COMM_WORLD_RANK", b"OMPI_COMM_WORLD_SIZE"),
        (b"LOCAL_RANK", b"WORLD_SIZE"),
    ):
        found = variables.get(name, b"")
        if found.isdigit() and (world is None or variables.get(world, b"1") != b"1"):
            return int(found)
    return None


def _variables(pid: int) -> dict[bytes, bytes]:
    """The environment with which the process was executed; empty when it has died."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = (entry.partition(b"=") for entry in file.read().split(b"\0") if entry)
            return {name: value for name, _, value in pairs}
    except OSError:
        return {}


def _execution(process: Process) -> Execution | None:
    """How the process was started; None when it has died."""
    try:
        with open(f"/proc/{process.pid}/cmdline", "rb") as file:
            argv = tuple(word.decode(errors="replace") for word in file.read().split(b"\0")[:-1])
        directory = os.readlink(f"/proc/{process.pid}/cwd")
    except OSError:
        return None
    try:
        environment = {name.decode(): value.decode() for name, value in _variables(process.pid).items()}
    except UnicodeDecodeError:
        return None  # it couldn't be told to another process
    return Execution(process.pid, process.rank, argv, environment, directory)


def _status(tid: int) -> dict[str, str]:
    with open(f"/proc/{tid}/status", encoding="utf-8", errors="replace") as lines:
        pairs = (line.partition(":") for line in lines)
        return {key: value.strip() for key, _, value in pairs}


def _has_thread(pid: int, tid: int) -> bool:
    return os.path.lexists(f"/proc/{pid}/task/{tid}")


def _children(pid: int) -> list[int]:
    """Children of every thread of a process; none when it has died."""
    if not _KERNEL_LISTS_CHILDREN:
        return _children_by_search(pid)
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as numbers:
                children += map(int, numbers.read().split())
    except OSError:
        pass
    return children
