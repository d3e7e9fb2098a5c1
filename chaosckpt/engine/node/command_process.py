"""A command's process tree as its node sees it: the ranks in it, what they are doing, and its end."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Sequence
from typing import Any

from chaosckpt.engine.gate.guard import Guard
from chaosckpt.engine.node.phase import Phase
from chaosckpt.engine.node.rank_process import RankProcess
from chaosckpt.engine.script_labels import BEGINS
from chaosckpt.engine.script_rolling import Saves, nth_number
from chaosckpt.engine.wire.orders import ScriptSettings
from chaosckpt.engine.wire.process_tree import descendants, kill_trees
from chaosckpt.engine.wire.reports import Cause, Exited, ScriptModules
from chaosckpt.model.checkpoints import Naming
from chaosckpt.model.operation import Operation

LOG_BYTES = 4 << 20
"""Of what a command printed, so much is kept: the end."""

TAIL_CHARACTERS = 12_000


class ScriptPhase(Phase):
    """What the command is doing now, by its operations: it recovers until it first writes to a checkpoint, and then saves."""

    def __init__(self, naming: Naming | None, numbers: Sequence[int] = ()) -> None:
        super().__init__()
        self.name, self.stage = "recover", "discover"
        self._naming = naming
        self._numbers = numbers
        self._saves = Saves(naming) if naming is not None and naming.rolling else None

    def report(self, report: object) -> None:
        """A command reports nothing that it does."""

    def see(self, operation: Operation) -> None:
        """Take note of an operation, before its label is asked."""
        step = self._step(operation)
        if operation.address.op in BEGINS and step is not None:
            removes = operation.address.op in ("unlink", "rmdir") and self._retires(step, operation.address.path)
            if removes and self.step is None:
                return  # it clears away what it won't resume from
            self.name, self.stage = "save", "retire" if removes else "persist"
            self.step = self.step if removes else step
        elif self.name == "recover" and operation.address.op == "read":
            self.stage = "load"

    def _retires(self, step: int, path: str) -> bool:
        """Whether to remove this is retention: it is of another step, or the whole entry of the one that was saved last."""
        if self.step is None or step != self.step or self._naming is None or self._naming.rolling:
            return self.step is None or step < self.step
        found = re.search(self._naming.pattern, path)
        return found is not None and "/" not in path[found.end() :]

    def _step(self, operation: Operation) -> int | None:
        if self._naming is None:
            return None
        paths = (operation.destination, operation.address.path)
        step = next((found for path in paths if (found := self._naming.belongs(path)) is not None), None)
        if step is None or self._saves is None:
            return step
        self._saves.follow(operation)
        return nth_number(self._numbers, self._saves.nth[operation.address.rank])

    def step_of(self, operation: Operation) -> int | None:
        """The step of the save under way."""
        return self.step


class ScriptProcess(RankProcess):
    """The tree of one command. `counts` are the operations of each rank in it."""

    def __init__(self, *arguments: Any, settings: ScriptSettings, ranks: int, numbers: Sequence[int]) -> None:
        super().__init__(*arguments)
        self._naming = Naming(settings.checkpoints) if settings.checkpoints else None
        self.phase = ScriptPhase(self._naming, numbers)
        self.ranks = ranks
        self.counts: Counter[int] = Counter()
        self.stopped: set[int] = set()
        self.read: set[int] = set()
        """The steps of whose files some were opened for reading."""
        self.modules: tuple[str, ...] = ()
        self.guard = Guard(settings.writable or (), files=settings.writable is not None, network=not settings.network)

    def gate_options(self) -> dict[str, Any]:
        """A command's tree may hold several ranks, a shell with redirections, and anything else."""
        return {"low_descriptors": True, "many_ranks": self.ranks > 1, "guard": self.guard}

    def count(self, operation: Operation) -> None:
        super().count(operation)
        self.counts[operation.address.rank] += 1
        if self._naming is not None and operation.address.op == "open_read" and operation.result == 0:
            step = self._naming.entry(operation.raw)
            self.read |= set() if step is None else {step}

    def readable(self) -> list[Any] | None:
        """A command only tells what it had imported, if it was asked."""
        reports = super().readable()
        for report in reports or ():
            if isinstance(report, ScriptModules):
                self.modules = report.modules
        return None if reports is None else []

    def tree(self) -> list[int]:
        """All its processes; once there are ranks, without what only watches over them, which never rests."""
        if self.status is not None:
            return []
        heads = self._heads()
        if not heads:
            return descendants(self.pid)
        return [pid for rank, head in heads.items() if rank not in self.stopped for pid in descendants(head)]

    def _heads(self) -> dict[int, int]:
        """The process of each rank that lives in this tree, where ranks are told apart."""
        return self.gate.ranks() if self.gate is not None and self.ranks > 1 else {}

    def _head(self, rank: int) -> int | None:
        """The process that is this rank with all that it started; the only rank is the command itself."""
        if self.status is not None:
            return None
        return self.pid if self.ranks == 1 else self._heads().get(rank)

    def kill_rank(self, rank: int, by: Cause) -> bool:
        """SIGKILL one rank with all that it started. False when no such rank is to be found."""
        head = self._head(rank)
        if head == self.pid:
            self.kill(by)
        elif head is not None:
            kill_trees([head])
        return head is not None

    def signal_rank(self, rank: int, number: signal.Signals) -> bool:
        """SIGSTOP or SIGCONT to one rank and all that it started. False when no such rank is to be found."""
        head = self._head(rank)
        if head is None:
            return False
        self.by = "fault"
        (self.stopped.add if number == signal.SIGSTOP else self.stopped.discard)(rank)
        self.suspended = self.ranks == len(self.stopped)
        self.signal_tree(head, number)
        return True

    def terminate(self) -> None:
        """SIGTERM to the command, as a scheduler sends it."""
        if self.status is None:
            self.by = "fault"
            os.kill(self.pid, signal.SIGTERM)

    def stderr_tail(self) -> str:
        """Enough of the end for an error of a rank and, behind it, all that torchrun has to say about it."""
        return self.output()[-TAIL_CHARACTERS:]

    def output(self) -> str:
        """The end of what it printed."""
        return self.end_of_log(LOG_BYTES)

    def ended(self, untraced: tuple[str, ...]) -> list[Exited]:
        """Every rank of the tree ended with the command's own process."""
        assert self.status is not None
        tail = self.stderr_tail()
        return [
            Exited(rank, self.status, self.by, tail, self.counts[rank], untraced if rank == 0 else ())
            for rank in range(self.ranks)
        ]
