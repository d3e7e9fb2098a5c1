"""One attempt: the job is launched on its nodes, observed to its end, and its faults are injected on the way.

Whatever runs ranks runs them by this loop: trials, golden runs, single-stepped runs, audits, references, measurements
and drills. They differ in the order that the ranks are given, in what they record, and in the `Listener` that hears
what is no event of a journal.

**What may run when.** The loop is one thread. Ranks run by themselves and are stopped in two ways only: an operation
is held at its gate because a fault's trigger names it, or a report waits for its answer. The loop takes in what nodes
report, in the order in which each node said it, and injects a fault when all of the operations that it holds are held
at once. An injection runs to its end before the next begins; it may take in reports meanwhile (`Ranks.pump`), so that
a fault which becomes ready then waits its turn in `_ready`.

**What is guaranteed.** A fault's evidence (FaultInjected) is recorded before anything that follows from it. Where the
injection itself lets ranks go on (a rank that is stopped, an error that is in force from now on) the control journals
the evidence in between; elsewhere it is recorded when the injection has returned, and no report of a death can come
before that, because reports are taken in by this thread. A fault whose operations are not all reached is recorded as
missed, with the reason. Exactly one AttemptEnded is the last event.

**Why no clock decides.** A cut that can't be reached shows as quiescence: every thread waits, so nothing will change
by itself. What is held is then let go, and the attempt goes on without that fault. Deadlines only end a wait for
something that never comes: survivors that go on after their grace, and a hang, which is quiescence (or no end) beyond
what a golden run gives any reason to expect. A hang is reported as one, never as a verdict about a fault; whoever
runs trials repeats it alone, with three times the patience.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.job_control import FaultControl
from chaosckpt.engine.runner.quiescence import Quiescence
from chaosckpt.engine.runner.ranks import TICK_SECONDS, NotArrived, Ranks, Record
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.reports import (
    Held,
    Measured,
    Push,
    RankEnvironment,
    Referred,
    Retained,
    StageMark,
    Stepping,
    Struck,
)
from chaosckpt.model import journal as j
from chaosckpt.model.fault import Fault
from chaosckpt.model.operation import STEP, Operation
from chaosckpt.model.phrasing import describe_operation, describe_trigger
from chaosckpt.model.topology import Topology

__all__ = ["AttemptRun", "Heard", "Listener", "Record"]

SINGLE_STEP = -1
"""What holds an operation that no fault names: the rank is stepped, operation by operation."""
_QUIET_SECONDS = 15.0
"""After so long without a sign of progress its listener is told; then each time that this has doubled."""
Heard = Retained | Referred | Measured | RankEnvironment | Stepping
"""What ranks report that is no event of a journal."""


class Listener:
    """What hears an attempt beside its journal. Override what is wanted; by default all passes unheard."""

    def heard(self, message: Heard) -> None:
        """A rank reported this, and goes on when this returns."""

    def stepped(self, held: Sequence[Operation], ranks: Ranks, rest: Quiescence) -> None:
        """The rank that is single-stepped is held before these operations, and nothing moves. It goes on when this returns."""

    def quiet(self, seconds: float, ranks: Ranks) -> None:
        """Nothing was reported, and no operation performed, for so long."""

    def not_quiescent(self, why: str) -> None:
        """The ranks did not come to rest while an operation was held, and are ended."""


class AttemptRun:
    """One attempt on an arena, yet to be run. Its events go to `record`."""

    def __init__(
        self,
        arena: Arena,
        order: AttemptOrder,
        topology: Topology,
        faults: Sequence[Fault],
        record: Record,
        deadlines: Deadlines,
        failure_groups: Sequence[Sequence[int]] = (),
        listener: Listener | None = None,
    ) -> None:
        self._order = order
        self._attempt = order.attempt
        self._faults = faults
        self._record = record
        self._deadlines = deadlines
        self._failure_groups = failure_groups
        self._listener = listener or Listener()
        self._ranks = Ranks(arena, topology, order.attempt, record, self._hear, deadlines)
        self._injected: set[int] = set()
        self._held: dict[int, dict[int, Held]] = {}
        self._first: dict[int, Held] = {}
        """For each fault that was ready, what is told of it: the operation of its first trigger."""
        self._ready: list[int] = []
        self._steps: list[Operation] = []
        self._reasons: dict[int, str] = {}
        self._hung = False
        self._tell_at = _QUIET_SECONDS

    @property
    def seconds(self) -> float:
        """From the launch to the last sign of progress, for deadlines only."""
        return self._ranks.last_progress - self._ranks.started

    def inject_between(self, previous: Topology) -> None:
        """Inject, before any rank runs, what changes the topology or the storage that the attempt before has left."""
        current = previous
        for index, fault in enumerate(self._faults):
            changed = fault.topology(current)
            control = self._control(index)
            evidence = f"{current} became {changed}" if changed != current else fault.prepare(control)
            current = changed
            if evidence is not None:
                self._record_injected(index, evidence, None, "")
            elif control.nothing_there:
                self._reasons[index] = control.nothing_there

    def run(self) -> j.AttemptOutcome:
        """Launch, observe, inject. Returns how the attempt ended. Raises HarnessError for trouble of the harness."""
        ranks = self._ranks
        ranks.launch(self._order, self._order.hold_steps or self._hold_steps())
        while ranks.alive:
            if not ranks.pump(TICK_SECONDS):
                self._look_for_standstill()
            while self._ready:
                self._inject(self._ready.pop(0))
            if ranks.alive and ranks.alive <= ranks.stopped:
                ranks.kill(sorted(ranks.alive), "fault")
        for index, fault in enumerate(self._faults):
            if index not in self._injected:
                self._record(
                    j.FaultNotInjected(
                        attempt=self._attempt,
                        fault=index,
                        kind=fault.kind,
                        reason=self._why_missed(index),
                        excused=self._excused(index),
                    )
                )
        outcome = self._outcome()
        self._record(
            j.AttemptEnded(
                attempt=self._attempt,
                outcome=outcome,
                confirmed=self._hung and self._deadlines.factor >= 3,
                operations=tuple(ranks.operations),
            )
        )
        return outcome

    def _hold_steps(self) -> dict[int, tuple[int, ...]]:
        """The steps before which some fault holds a rank's training thread."""
        found: dict[int, list[int]] = {}
        for address in (trigger.address for fault in self._faults for trigger in fault.holds()):
            if address.op == STEP:
                found.setdefault(address.rank, []).append(int(address.path.partition(":")[2]))
        return {rank: tuple(sorted(steps)) for rank, steps in found.items()}

    # What the ranks report

    def _hear(self, message: Push) -> None:
        match message:
            case StageMark():
                pass
            case Retained() | Referred() | Measured() | RankEnvironment() | Stepping():
                self._listener.heard(message)
            case Held():
                self._hold(message)
            case Struck():
                self._answered(message)
            case _:
                self._record(message)  # type: ignore[arg-type]  # Ranks has taken what is no event

    def _hold(self, held: Held) -> None:
        if held.fault == SINGLE_STEP:
            self._steps.append(held.operation)
            self._ready.append(SINGLE_STEP)
            return
        waiting = self._held.setdefault(held.fault, {})
        waiting[held.trigger] = held
        if len(waiting) == len(self._faults[held.fault].holds()):
            self._ready.append(held.fault)

    def _answered(self, struck: Struck) -> None:
        """A fault answered an operation by itself, on the node."""
        rank = struck.operation.address.rank
        self._record(j.ErrorInjected(attempt=self._attempt, rank=rank, error=struck.error, operation=struck.operation))
        if struck.fault not in self._injected and not self._faults[struck.fault].holds():
            evidence = f"{describe_operation(struck.operation.address)}: {struck.error}"
            self._record_injected(struck.fault, evidence, struck.operation, struck.label)

    # Standstill

    def _look_for_standstill(self) -> None:
        ranks, now = self._ranks, time.monotonic()
        if ranks.survivors_until is not None:
            # They may stand still for ever, which is no hang: they wait for what a fault took from them.
            if now > max(ranks.survivors_until, self._progress_until(now)):
                ranks.kill(None, "harness")
            return
        partly = [fault for fault, held in self._held.items() if fault not in self._injected and held]
        if partly and ranks.quiescence():
            # What is held waits for a peer that itself waits: the cut can't be reached.
            for fault in partly:
                wanted = len(self._faults[fault].holds())
                self._reasons[fault] = (
                    f"only {len(self._held[fault])} of the {wanted} operations of the fault were reached together"
                )
                self._resume(fault)
            return
        ranks.note_progress(now)
        quiet = now - ranks.last_progress
        if quiet >= self._tell_at:
            self._tell_at = 2 * quiet
            self._listener.quiet(quiet, ranks)
        elif quiet < _QUIET_SECONDS:
            self._tell_at = _QUIET_SECONDS
        if (
            quiet > self._deadlines.hang_seconds and ranks.quiescence() in ("exact", "idle")
        ) or now - ranks.started > self._deadlines.longest_seconds:
            self._hung = True
            ranks.kill(None, "harness")

    def _progress_until(self, now: float) -> float:
        """The end of the grace of a job that lost no rank: it goes on for as long as it gets anywhere."""
        ranks, deadlines = self._ranks, self._deadlines
        if len(ranks.alive) < ranks.topology.world_size or ranks.stopped:
            return 0.0
        ranks.note_progress(now)
        return min(ranks.last_progress + deadlines.grace_seconds, ranks.started + deadlines.longest_seconds)

    # Injecting

    def _inject(self, index: int) -> None:
        if index == SINGLE_STEP:
            self._single_step()
            return
        held = self._held[index]
        self._first[index] = held[min(held)]
        control = self._control(index)
        try:
            self._faults[index].inject(control)
        except NotArrived as error:
            self._reasons[index] = str(error)
            control.activate(False)
            self._resume(index)
            return
        self._took_effect(index)

    def _control(self, index: int) -> FaultControl:
        return FaultControl(
            index,
            self._ranks,
            self._attempt,
            self._record,
            self._deadlines,
            self._failure_groups,
            lambda: self._took_effect(index),
            lambda: self._resume(index),
        )

    def _single_step(self) -> None:
        try:
            rest = self._ranks.await_quiescence()
        except NotArrived as error:
            self._listener.not_quiescent(str(error))
            self._ranks.kill(None, "harness")
            return
        # With several threads more than one operation may be held by now.
        held, self._steps = self._steps, []
        self._listener.stepped(held, self._ranks, rest)
        self._resume(SINGLE_STEP)

    def _resume(self, index: int) -> None:
        self._held.pop(index, None)
        for node in self._ranks.nodes:
            node.resume(index)

    def _took_effect(self, index: int) -> None:
        """Record, once, that a fault which held operations was injected."""
        if index not in self._injected:
            first = self._first[index]
            evidence = "; ".join(describe_trigger(trigger) for trigger in self._faults[index].holds())
            self._record_injected(index, evidence, first.operation, first.label)

    def _record_injected(self, index: int, evidence: str, operation: Operation | None, label: str) -> None:
        self._injected.add(index)
        fault = self._faults[index]
        self._record(
            j.FaultInjected(
                attempt=self._attempt,
                fault=index,
                kind=fault.kind,
                evidence=evidence,
                operation=operation,
                label=label,
                needs=tuple(sorted(fault.needs)),
            )
        )

    # The end

    def _why_missed(self, index: int) -> str:
        if self._faults[index].between:
            return self._reasons.get(index, "storage had nothing that the fault could change")
        return self._reasons.get(index, "the attempt ended before the operation of the fault was reached")

    def _excused(self, index: int) -> bool:
        """Whether the attempt ended badly by an error that came before this fault: one that finished has survived the error."""
        errors = [earlier for earlier in self._injected if earlier < index and self._faults[earlier].ends == "perhaps"]
        return bool(errors) and self._outcome() != "finished"

    def _outcome(self) -> j.AttemptOutcome:
        if self._hung:
            return "hung"
        if all(code == 0 for code in self._ranks.codes.values()):
            return "finished"
        ended_by_fault = any(self._faults[index].ends != "nothing" for index in self._injected)
        return "killed" if ended_by_fault else "failed"
