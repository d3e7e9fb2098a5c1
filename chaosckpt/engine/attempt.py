"""One attempt: the job is launched on its nodes, watched to its end, and struck by its faults on the way."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Sequence

import msgspec

from chaosckpt.engine.acts import TICK_SECONDS, Acts, NotArrived, Record
from chaosckpt.engine.arena import Arena
from chaosckpt.engine.deadlines import Deadlines
from chaosckpt.engine.runner.node_client import Inbox, Node
from chaosckpt.engine.wire.orders import AttemptOrder, Place
from chaosckpt.engine.wire.reports import (
    Exited,
    Held,
    ImportedModules,
    Mark,
    Measured,
    Push,
    Referred,
    Rendezvous,
    Retained,
    Stepping,
    Struck,
    Surroundings,
    Trouble,
)
from chaosckpt.errors import HarnessError
from chaosckpt.model import journal as j
from chaosckpt.model.fault import Fault
from chaosckpt.model.operation import STEP, Operation
from chaosckpt.model.topology import Topology

__all__ = ["AttemptRun", "NotArrived", "Record"]


class AttemptRun(Acts):
    """Runs one attempt; to its faults it is the JobControl (chaosckpt/model/fault.py)."""

    def __init__(
        self,
        arena: Arena,
        order: AttemptOrder,
        topology: Topology,
        faults: Sequence[Fault],
        record: Record,
        deadlines: Deadlines,
        failure_groups: Sequence[Sequence[int]] = (),
    ) -> None:
        self.topology = topology
        self.failure_groups = failure_groups
        self.operations = [0] * topology.world_size
        self.landed: set[int] = set()
        self._arena = arena
        self._order = order
        self._faults = faults
        self._record = record
        self._deadlines = deadlines
        self._attempt = order.attempt
        self._inbox: Inbox = queue.SimpleQueue()
        self._nodes: list[Node] = []
        self._alive: set[int] = set()
        self._stopped: set[int] = set()
        self._codes: dict[int, int | None] = {}
        self._held: dict[int, dict[int, Held]] = {}
        self._ready: list[int] = []
        self._reasons: dict[int, str] = {}
        self._current = -1
        self._last_progress = 0.0
        self._survivors_until: float | None = None
        self._nothing_there = ""
        self._hung = False

    def run(self) -> j.AttemptOutcome:
        """Launch, watch, strike. Returns how the attempt ended. Raises HarnessError for trouble of the harness."""
        self._launch()
        while self._alive:
            self._pump(TICK_SECONDS)
            while self._ready:
                self._land(self._ready.pop(0))
            if self._alive and self._alive <= self._stopped:
                self._kill(sorted(self._alive), "fault")
        for index, fault in enumerate(self._faults):
            if index not in self.landed:
                self._record(
                    j.FaultMissed(attempt=self._attempt, fault=index, kind=fault.kind, reason=self._why_missed(index))
                )
        outcome = self._outcome()
        self._record(
            j.AttemptEnded(
                attempt=self._attempt,
                outcome=outcome,
                confirmed=self._hung and self._deadlines.factor >= 3,
                operations=tuple(self.operations),
            )
        )
        return outcome

    def _launch(self) -> None:
        count = len(self.topology.ranks)
        self._nodes = self._arena.distinct(count)
        started = time.monotonic()
        for node in self._nodes:
            node.inbox = self._inbox
            numbers = [number for number in range(count) if self._arena.nodes[number] is node]
            places = tuple(self._place(number, rank) for number in numbers for rank in self.topology.ranks_on(number))
            steps = self._hold_steps()
            order = msgspec.structs.replace(self._order, places=places, address=node.address, hold_steps=steps)
            node.start(order)
        self._alive = set(range(self.topology.world_size))
        self._started = self._last_progress = started

    def _hold_steps(self) -> dict[int, tuple[int, ...]]:
        """The steps before which some fault holds a rank's training thread."""
        found: dict[int, list[int]] = {}
        for address in (trigger.address for fault in self._faults for trigger in fault.holds()):
            if address.op == STEP:
                found.setdefault(address.rank, []).append(int(address.path.partition(":")[2]))
        return {rank: tuple(sorted(steps)) for rank, steps in found.items()}

    def _place(self, number: int, rank: int) -> Place:
        return Place(rank, number, rank - self.topology.ranks_on(number).start, self._arena.tiers(number))

    # What the nodes tell

    def _pump(self, timeout_seconds: float) -> None:
        """Take in what the nodes tell, waiting for the first message so long; look for a standstill where none comes."""
        try:
            node, message = self._inbox.get(timeout=timeout_seconds)
        except queue.Empty:
            if timeout_seconds >= TICK_SECONDS:
                self._look_for_standstill()
            return
        self._last_progress = time.monotonic()
        self._take(node, message)
        self._drain()

    def _drain(self) -> None:
        while True:
            try:
                node, message = self._inbox.get_nowait()
            except queue.Empty:
                return
            self._take(node, message)

    def _take(self, node: Node, message: Push) -> None:
        if node not in self._nodes:
            return  # a node that was lost on purpose
        match message:
            case Rendezvous():
                self._tell_others(node, message)
            case Mark() | ImportedModules():
                pass
            case Stepping():
                self.stepping(message)
            case Retained() | Referred() | Measured():
                self.noted(message)
            case Surroundings():
                self.surrounded(message)
            case Held():
                self._hold(message)
            case Struck():
                self._struck(message)
            case Exited():
                self._exited(message)
            case Trouble():
                raise HarnessError(message.what)
            case _:
                self._record(message)

    def _tell_others(self, node: Node, message: Rendezvous) -> None:
        for other in self._nodes:
            if other is not node:
                other.rendezvous(message)

    def noted(self, message: Retained | Referred | Measured) -> None:
        """What a program other than training reports; see audit.py, reference.py and chaosckpt/measure/job.py."""

    def surrounded(self, message: Surroundings) -> None:
        """What a rank found around it; see chaosckpt/measure/drill_restart.py."""

    def stepping(self, message: Stepping) -> None:
        """A rank is about to train a step; see ladder.py."""

    def _hold(self, held: Held) -> None:
        waiting = self._held.setdefault(held.fault, {})
        waiting[held.trigger] = held
        if held.fault < 0 or len(waiting) == len(self._faults[held.fault].holds()):
            self._ready.append(held.fault)

    def _struck(self, struck: Struck) -> None:
        rank = struck.operation.address.rank
        self._record(j.ErrorInjected(attempt=self._attempt, rank=rank, error=struck.error, operation=struck.operation))
        if struck.fault not in self.landed and not self._faults[struck.fault].holds():
            self._landed(struck.fault, f"{struck.operation.address}: {struck.error}", struck.operation, struck.label)

    def _landed(self, fault: int, evidence: str, operation: Operation | None, label: str) -> None:
        self.landed.add(fault)
        struck = self._faults[fault]
        self._record(
            j.FaultLanded(
                attempt=self._attempt,
                fault=fault,
                kind=struck.kind,
                evidence=evidence,
                operation=operation,
                label=label,
                needs=tuple(sorted(struck.needs)),
            )
        )

    def _exited(self, exited: Exited) -> None:
        self._gone(exited.rank, exited.status, exited.by, exited.stderr_tail)
        self.operations[exited.rank] = exited.operations
        for what in exited.untraced:
            # The gate's notes are sentences; of a ring for asynchronous operations it says that it was refused.
            refused = what.endswith("was refused with ENOSYS")
            self._record(j.Untraced(attempt=self._attempt, rank=exited.rank, what=what, refused=refused))

    def _gone(self, rank: int, status: int, by: str, stderr_tail: str = "") -> None:
        signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        self._alive.discard(rank)
        self._codes[rank] = code
        tail = stderr_tail if code else ""
        self._record(
            j.RankExited(attempt=self._attempt, rank=rank, exit_code=code, signal=signal, by=by, stderr_tail=tail)  # type: ignore[arg-type]
        )

    # Standstill

    def _look_for_standstill(self) -> None:
        now = time.monotonic()
        if self._survivors_until is not None:
            # They may stand still for ever, which is no hang: they wait for what a fault took from them.
            if now > max(self._survivors_until, self._progress_until(now)):
                self._kill(None, "harness")
            return
        partly = [fault for fault, held in self._held.items() if fault >= 0 and fault not in self.landed and held]
        if partly and self._at_rest():
            # What is held waits for a peer that itself waits: the cut can't be reached. Rest is exact, so no time decides this.
            for fault in partly:
                wanted = len(self._faults[fault].holds())
                self._reasons[fault] = f"only {len(self._held[fault])} of its {wanted} operations are reached together"
                self._resume(fault)
            return
        self._note_progress(now)
        quiet = now - self._last_progress
        if (
            quiet > self._deadlines.hang_seconds and self._at_rest()
        ) or now - self._started > self._deadlines.longest_seconds:
            self._hung = True
            self._kill(None, "harness")

    def _note_progress(self, now: float) -> None:
        before = tuple(self.operations)
        if self.counts() != before:
            self._last_progress = now

    def _progress_until(self, now: float) -> float:
        """The end of the grace of a job that lost no rank: it goes on for as long as it gets anywhere."""
        if len(self._alive) < self.topology.world_size or self._stopped:
            return 0.0
        self._note_progress(now)
        return min(self._last_progress + self._deadlines.grace_seconds, self._started + self._deadlines.longest_seconds)

    def counts(self) -> tuple[int, ...]:
        """Operations performed so far by each rank."""
        for node in self._nodes:
            for rank, number in node.counts().items():
                self.operations[rank] = number
        return tuple(self.operations)

    # Striking

    def _land(self, index: int) -> None:
        held = self._held[index]
        first = held[min(held)]
        self._current = index
        try:
            self._faults[index].land(self)
        except NotArrived as error:
            self._reasons[index] = str(error)
            self.activate(False)
            self._resume(index)
            return
        self._note_landing(index, first)

    def _note_landing(self, index: int, first: Held) -> None:
        if index not in self.landed:
            evidence = "; ".join(str(trigger) for trigger in self._faults[index].holds())
            self._landed(index, f"held and struck {evidence}", first.operation, first.label)

    def _strikes_now(self) -> None:
        held = self._held[self._current]
        self._note_landing(self._current, held[min(held)])

    # The end

    def _why_missed(self, index: int) -> str:
        if self._faults[index].between:
            return self._nothing_there or "there was nothing to strike"
        return self._reasons.get(index, "the attempt ended before its operation was reached")

    def _outcome(self) -> j.AttemptOutcome:
        if self._hung:
            return "hung"
        if all(code == 0 for code in self._codes.values()):
            return "finished"
        ended_by_fault = any(self._faults[index].ends != "nothing" for index in self.landed)
        return "killed" if ended_by_fault else "failed"
