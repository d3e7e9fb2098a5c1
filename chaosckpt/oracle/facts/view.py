"""What a journal tells: events by their kind, and of a target's trial by attempt and rank: the view that its invariants judge."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import msgspec

from chaosckpt.model.fault import Trigger
from chaosckpt.model.journal import (
    AnyEvent,
    AttemptEnded,
    AttemptStarted,
    Audited,
    ErrorInjected,
    Event,
    FaultInjected,
    Finished,
    Journal,
    Raised,
    RankExited,
    Recovered,
    RecoveryStarted,
    StorageMutated,
    TrialStarted,
)
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.topology import Topology
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.blame import INEXACT, ended_by_fault, likely_fault
from chaosckpt.oracle.phrasing import after_restart, blaming

E = TypeVar("E", bound=Event, covariant=True)

Phase = Literal["absent", "recovered", "raised", "exited", "killed", "cleared", "open"]
"""How a rank's recovery went.

absent: it never began. recovered: `recover` returned. raised: it raised. exited: the process ended inside it, by
itself. killed: by a fault. cleared: the harness ended the process, because the job had ended or hung. open: the
journal tells no more.
"""


STOP = "sigstop"
"""The kind of fault that stops a rank for good: it neither goes on nor ends."""


@dataclass(frozen=True)
class At(Generic[E]):
    """An event with its index in the journal."""

    index: int
    event: E


class Events:
    """A run of events, in order, with a look-up by their class: the same journal is asked many times."""

    events: tuple[At[AnyEvent], ...]

    @functools.cached_property
    def _by_kind(self) -> dict[type, list[At[Any]]]:
        found: dict[type, list[At[Any]]] = {}
        for at in self.events:
            found.setdefault(type(at.event), []).append(at)
        return found

    def all(self, kind: type[E]) -> Sequence[At[E]]:
        return self._by_kind.get(kind, ())

    def first(self, kind: type[E]) -> At[E] | None:
        return next(iter(self.all(kind)), None)


def rank_of(event: AnyEvent) -> int | None:
    """The rank that an event belongs to; None for what the harness did to the whole job or to storage."""
    if isinstance(event, FaultInjected):
        return None if event.operation is None else event.operation.address.rank
    rank = getattr(event, "rank", None)
    return rank if isinstance(rank, int) else None


@dataclass(frozen=True, eq=False)
class Track(Events):
    """The events of one rank in one attempt, in order."""

    rank: int
    events: tuple[At[AnyEvent], ...]

    @property
    def recovered(self) -> At[Recovered] | None:
        return self.first(Recovered)

    @property
    def recovery_error(self) -> At[Raised] | None:
        return next((at for at in self.all(Raised) if at.event.where == "recover"), None)

    @property
    def exit(self) -> At[RankExited] | None:
        return self.first(RankExited)

    @property
    def finished(self) -> At[Finished] | None:
        return self.first(Finished)

    @property
    def phase(self) -> Phase:
        if self.recovered is not None:
            return "recovered"
        if self.recovery_error is not None:
            return "raised"
        if self.first(RecoveryStarted) is None:
            return "absent"
        if self.exit is None:
            return "open"
        if ended_by_fault(self.exit.event):
            return "killed"
        return "exited" if self.exit.event.by == "self" else "cleared"

    def before_recovered(self, index: int) -> bool:
        """True when this rank had not yet recovered at that place of the journal."""
        return self.recovered is None or index < self.recovered.index


@dataclass(frozen=True, eq=False)
class TargetAttempt(Events):
    """One launch of the job."""

    number: int
    start: At[AttemptStarted]
    events: tuple[At[AnyEvent], ...]

    @functools.cached_property
    def topology(self) -> Topology:
        return Topology(self.start.event.ranks)

    @property
    def world_size(self) -> int:
        return self.topology.world_size

    @property
    def closing(self) -> bool:
        return self.start.event.closing

    @property
    def resumes(self) -> bool:
        return self.start.event.intent == "resume"

    @functools.cached_property
    def tracks(self) -> tuple[Track, ...]:
        of_rank: list[list[At[AnyEvent]]] = [[] for _ in range(self.world_size)]
        for at in self.events:
            rank = rank_of(at.event)
            # An audit's ranks are those of another launch.
            if rank is not None and rank < self.world_size and not isinstance(at.event, Audited):
                of_rank[rank].append(at)
        return tuple(Track(rank, tuple(events)) for rank, events in enumerate(of_rank))

    @property
    def end(self) -> At[AttemptEnded] | None:
        return self.first(AttemptEnded)

    @property
    def recovered(self) -> tuple[At[Recovered], ...]:
        """What `recover` returned, in the order of ranks."""
        return tuple(track.recovered for track in self.tracks if track.recovered is not None)

    @functools.cached_property
    def recovery_ends(self) -> int:
        """Index of the last event by which a rank left its recovery; the last of the attempt where one never did."""
        ends = [track.recovered or track.recovery_error for track in self.tracks]
        known = [at.index for at in ends if at is not None]
        if len(known) == len(ends):
            return max(known)
        # What follows the end of an attempt is told of it by later launches: its audit, its reference.
        return self.end.index if self.end is not None else max((at.index for at in self.events), default=0)

    @functools.cached_property
    def stopped(self) -> frozenset[int]:
        """Ranks that a fault stopped for good without ending them (SIGSTOP)."""
        landed = [at.event.operation for at in self.all(FaultInjected) if at.event.kind == STOP]
        return frozenset(operation.address.rank for operation in landed if operation is not None)

    @functools.cached_property
    def rank_was_killed(self) -> bool:
        """True when a fault ended or stopped a rank, so that its peers may wait for it in vain."""
        return bool(self.stopped) or any(ended_by_fault(at.event) for at in self.all(RankExited))

    @functools.cached_property
    def unharmed(self) -> bool:
        """True when faults only delayed it, if any struck: no rank was killed or stopped, and no error injected."""
        landed = [at.event for at in self.all(FaultInjected) if at.event.operation is not None]
        return not (self.rank_was_killed or self.all(ErrorInjected) or any(fault.needs for fault in landed))

    @functools.cached_property
    def finished(self) -> bool:
        """True when every rank reached its end and exited with code 0."""
        ends = [(track.finished, track.exit) for track in self.tracks]
        return all(done and exited and exited.event.exit_code == 0 for done, exited in ends)

    @functools.cached_property
    def recovery_harmed(self) -> tuple[int, ...]:
        """Indices of errors injected and kills done before the rank concerned had recovered."""
        harmed = [at.index for t in self.tracks for at in t.all(ErrorInjected) if t.before_recovered(at.index)]
        harmed += [t.exit.index for t in self.tracks if t.exit and ended_by_fault(t.exit.event) and t.recovered is None]
        harmed += [
            at.index for at in self.all(FaultInjected) if at.event.kind == STOP and self.struck_before_recovered(at)
        ]
        return tuple(sorted(harmed))

    def struck_before_recovered(self, at: At[FaultInjected]) -> bool:
        """True when the rank at whose operation a fault landed had not yet recovered."""
        operation = at.event.operation
        rank = operation.address.rank if operation is not None else -1
        return 0 <= rank < self.world_size and self.tracks[rank].before_recovered(at.index)

    @functools.cached_property
    def recovery_struck(self) -> tuple[int, ...]:
        """Indices of everything that faults did during the recovery, harmful or not."""
        starts = [at.index for at in self.all(RecoveryStarted)]
        struck = set(self.recovery_harmed)
        for at in self.all(FaultInjected):
            # What landed before any rank began to recover struck between two attempts.
            if starts and min(starts) < at.index and any(track.before_recovered(at.index) for track in self.tracks):
                struck.add(at.index)
        return tuple(sorted(struck))

    @property
    def hung_in_recovery(self) -> tuple[Track, ...]:
        """Ranks that never came back from their recovery in an attempt that hung, though no rank of it had been
        killed."""
        if self.end is None or self.end.event.outcome != "hung" or self.rank_was_killed:
            return ()
        return tuple(track for track in self.tracks if track.phase in ("cleared", "open"))

    @property
    def hang_confirmed(self) -> bool:
        return self.end is not None and self.end.event.confirmed


class JournalView(Events):
    """One trial, whatever was tested in it. Raises ValueError for a journal that doesn't begin with TrialStarted."""

    def __init__(self, scenario: Scenario, journal: Journal) -> None:
        if not journal.events or not isinstance(journal.events[0], TrialStarted):
            raise ValueError("the journal doesn't begin with the start of a trial")
        self.scenario = scenario
        self.journal = journal
        self.start: TrialStarted = journal.events[0]
        self.events = tuple(At(index, event) for index, event in enumerate(journal.events))

    def planned_faults(self) -> Iterator[tuple[int, int, str]]:
        """(attempt, index in its plan, kind) of every fault of the schedule."""
        for number, index, fault in self._plans():
            yield number, index, str(fault.get("kind", "?"))

    def _plans(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """The same, with the whole of each fault as the schedule has it."""
        attempts = self.start.schedule.get("attempts", [])
        for number, plan in enumerate(attempts if isinstance(attempts, (list, tuple)) else ()):
            for index, fault in enumerate(plan.get("faults", []) if isinstance(plan, dict) else ()):
                yield number, index, fault if isinstance(fault, dict) else {}

    def after_restart(self, attempt: int) -> str:
        """When this attempt ran, to begin a sentence with."""
        return after_restart(attempt, len({number for number, _, _ in self.planned_faults()}))

    def _trigger(self, fault: FaultInjected | None) -> Trigger | None:
        """Where the schedule has this fault held; None where it doesn't tell."""
        if fault is None or fault.operation is None:
            return None
        address = msgspec.to_builtins(fault.operation.address)
        for number, index, plan in self._plans():
            if (number, index) == (fault.attempt, fault.fault):
                at = plan.get("at", ())
                for one in at if isinstance(at, (list, tuple)) else (at,):
                    if isinstance(one, dict) and one.get("address") == address:
                        return msgspec.convert(one, Trigger)
        return None

    def violation(
        self,
        invariant: str,
        sentence: str,
        *,
        attempt: int,
        error_type: str,
        evidence: Sequence[int],
        expected: str,
        seen: str,
        rank: int | None = None,
        step: int | None = None,
        path: str | None = None,
        shown: int | None = None,
        fault: FaultInjected | None = None,
        blame: bool = True,
    ) -> Violation:
        """What breaks an invariant, its sentence completed by the fault that is most likely behind it.

        `evidence` are indices of events; the violation shows at `shown`, by default the last of them, and only what struck
        before may be to blame. `fault` is to blame where the invariant knows better; without `blame`, and where to
        resume is enough (INEXACT), none is. `path` is by default the file that this fault struck.
        """
        if blame and error_type != INEXACT:
            fault = fault or likely_fault(self.journal.events, max(evidence) if shown is None else shown, attempt)
            path = path or (fault.operation.address.path if fault is not None and fault.operation is not None else None)
            sentence += blaming(fault, self._trigger(fault))
        return Violation(
            invariant=invariant,
            sentence=sentence,
            attempt=attempt,
            rank=rank,
            step=step,
            path=path,
            expected=expected,
            seen=seen,
            error_type=error_type,
            evidence=tuple(evidence),
        )


class TargetView(JournalView):
    """One trial of a target."""

    @functools.cached_property
    def attempts(self) -> tuple[TargetAttempt, ...]:
        """The attempts that were launched, in order."""
        events: dict[int, list[At[AnyEvent]]] = {}
        for at in self.events:
            events.setdefault(at.event.attempt, []).append(at)
        started = {start.event.attempt: start for start in reversed(self.all(AttemptStarted))}
        return tuple(TargetAttempt(number, start, tuple(events[number])) for number, start in sorted(started.items()))

    def attempt(self, number: int) -> TargetAttempt | None:
        """The attempt with this number, if it was launched."""
        return next((attempt for attempt in self.attempts if attempt.number == number), None)

    def damaged(self, until: int) -> tuple[int, ...]:
        """Indices of the damage that faults did to files at rest, up to this place of the journal."""
        return tuple(at.index for at in self.all(StorageMutated) if at.event.damages and at.index <= until)

    @property
    def closing(self) -> TargetAttempt | None:
        return next((attempt for attempt in self.attempts if attempt.closing), None)
