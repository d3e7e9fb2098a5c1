"""One attempt: the job is launched on its nodes, watched to its end, and struck by its faults on the way."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Callable, Sequence

import msgspec

from chaosckpt.engine.arena import Arena
from chaosckpt.engine.deadlines import Deadlines
from chaosckpt.engine.local import Inbox, Node
from chaosckpt.engine.messages import (
    AttemptOrder,
    Exited,
    Held,
    Mark,
    Place,
    Push,
    Referred,
    Rendezvous,
    Retained,
    Stepping,
    Struck,
    Trouble,
)
from chaosckpt.errors import HarnessError
from chaosckpt.model import journal as j
from chaosckpt.model.fault import Fault
from chaosckpt.model.operation import Operation
from chaosckpt.model.topology import Topology

TICK_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 0.002
Record = Callable[[j.AnyEvent], None]


class NotArrived(Exception):
    """The job did not come to the place where a fault was to strike."""


class AttemptRun:
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
        self._codes: dict[int, int | None] = {}
        self._held: dict[int, dict[int, Held]] = {}
        self._ready: list[int] = []
        self._reasons: dict[int, str] = {}
        self._current = -1
        self._last_progress = 0.0
        self._survivors_until: float | None = None
        self._hung = False

    def run(self) -> j.AttemptOutcome:
        """Launch, watch, strike. Returns how the attempt ended. Raises HarnessError for trouble of the harness."""
        self._launch()
        while self._alive:
            self._pump(TICK_SECONDS)
            while self._ready:
                self._land(self._ready.pop(0))
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
            order = msgspec.structs.replace(self._order, places=places, address=node.address)
            node.call("start", order)
        self._alive = set(range(self.topology.world_size))
        self._started = self._last_progress = started

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
                for other in self._nodes:
                    if other is not node:
                        other.call("rendezvous", message)
            case Mark() | Stepping():
                pass
            case Retained() | Referred():
                self.noted(message)
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

    def noted(self, message: Retained | Referred) -> None:
        """What a life of another kind than training reports; see audit.py and reference.py."""

    def _hold(self, held: Held) -> None:
        waiting = self._held.setdefault(held.fault, {})
        waiting[held.trigger] = held
        if held.fault < 0 or len(waiting) == len(self._faults[held.fault].holds()):
            self._ready.append(held.fault)

    def _struck(self, struck: Struck) -> None:
        rank = struck.operation.address.rank
        self._record(j.ErrorInjected(attempt=self._attempt, rank=rank, error=struck.error, operation=struck.operation))
        if struck.first and struck.fault not in self.landed:
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
        if self._survivors_until is not None and now > self._survivors_until:
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
        before = tuple(self.operations)
        if self.counts() != before:
            self._last_progress = now
        quiet = now - self._last_progress
        if (
            quiet > self._deadlines.hang_seconds and self._at_rest()
        ) or now - self._started > self._deadlines.longest_seconds:
            self._hung = True
            self._kill(None, "harness")

    def counts(self) -> tuple[int, ...]:
        """Operations performed so far by each rank."""
        for node in self._nodes:
            for rank, number in node.call("counts").items():
                self.operations[int(rank)] = number
        return tuple(self.operations)

    def _at_rest(self) -> bool:
        if len(self._nodes) == 1:
            return bool(self._nodes[0].call("rest"))
        first = [node.call("look") for node in self._nodes]
        return None not in first and first == [node.call("look") for node in self._nodes]

    # Striking

    def _land(self, index: int) -> None:
        held = self._held[index]
        first = held[min(held)]
        self._current = index
        try:
            self._faults[index].land(self)
        except NotArrived as error:
            self._reasons[index] = str(error)
            self._resume(index)
            return
        evidence = "; ".join(str(trigger) for trigger in self._faults[index].holds())
        self._landed(index, f"held and struck {evidence}", first.operation, first.label)

    def await_rest(self) -> None:
        """See JobControl."""
        until = time.monotonic() + self._deadlines.rest_seconds
        while not self._at_rest():
            if time.monotonic() > until:
                raise NotArrived("the other ranks did not come to rest")
            self._pump(LOOK_AGAIN_SECONDS)
        self._drain()

    def kill_job(self) -> None:
        """See JobControl. Every gate is shut before the first process dies, so that nobody's death is another's chance."""
        for node in self._nodes:
            node.call("freeze")
        self._kill(None, "fault")

    def _kill(self, ranks: Sequence[int] | None, by: str) -> None:
        for node in self._nodes:
            node.call("kill", (ranks, by))

    def kill_rank(self, rank: int) -> None:
        """See JobControl."""
        self._kill([rank], "fault")
        self._let_survivors_live()

    def _let_survivors_live(self) -> None:
        self._survivors_until = time.monotonic() + self._deadlines.grace_seconds

    def terminate(self, ranks: Sequence[int]) -> None:
        """See JobControl."""
        for node in self._nodes:
            node.call("terminate", list(ranks))

    def lose_node(self, node: int) -> None:
        """See JobControl."""
        if node >= len(self.topology.ranks):
            return
        self._drain()
        ranks = list(self.topology.ranks_on(node))
        carrier = self._arena.nodes[node]
        if self._arena.dedicated:
            self._nodes.remove(carrier)
            # The process group of the machine that is gone: its ranks die with it, and nobody is left there to report it.
            files = carrier.call("lose", self._arena.tiers(node)["local"])
            self._arena.lose(node)
            for rank in ranks:
                if rank in self._alive:
                    self._gone(rank, 9, "fault")
        else:
            self._kill(ranks, "fault")
            files = carrier.call("drop", self._arena.tiers(node)["local"])
            self._arena.lose(node)
        self._record(j.StorageDestroyed(attempt=self._attempt, tier="local", node=node, files=files, cause="node-loss"))
        self._let_survivors_live()

    def resume(self) -> None:
        """See JobControl."""
        self._resume(self._current)

    def _resume(self, fault: int) -> None:
        self._held.pop(fault, None)
        for node in self._nodes:
            node.call("resume", fault)

    def run_for(self, seconds: float) -> None:
        """See JobControl."""
        until = time.monotonic() + seconds
        while self._alive and (left := until - time.monotonic()) > 0:
            self._pump(min(left, TICK_SECONDS / 2))

    def drop_storage(self, tier: str, node: int | None = None) -> int:
        """See JobControl."""
        carrier = self._arena.nodes[node or 0]
        files = int(carrier.call("drop", self._arena.tiers(node or 0)[tier]))
        cause = "shared-storage-loss" if tier == "shared" else "local-storage-loss"
        self._record(j.StorageDestroyed(attempt=self._attempt, tier=tier, node=node, files=files, cause=cause))  # type: ignore[arg-type]
        return files

    # The end

    def _why_missed(self, index: int) -> str:
        return self._reasons.get(index, "the attempt ended before its operation was reached")

    def _outcome(self) -> j.AttemptOutcome:
        if self._hung:
            return "hung"
        if all(code == 0 for code in self._codes.values()):
            return "finished"
        ended_by_fault = any(self._faults[index].ends != "nothing" for index in self.landed)
        return "killed" if ended_by_fault else "failed"
