"""Blame: which of the faults that landed is most likely behind a violation, and the root cause that many trials share."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from chaosckpt.model.finding import RootCause, file_pattern
from chaosckpt.model.journal import (
    Acknowledged,
    AnyEvent,
    ErrorInjected,
    FaultInjected,
    Journal,
    RankExited,
    Recovered,
    SaveStarted,
    StorageDestroyed,
    StorageMutated,
)
from chaosckpt.model.verdict import Verdict, Violation

INEXACT = "inexact-resume"
"""The word for a violation that no fault is behind: to resume is enough."""
FULL_STATE = "full-state"
"""The invariant that a change of the number of ranks breaks by itself, wherever the job was interrupted before."""


def ended_by_fault(event: AnyEvent) -> bool:
    """True for the end of a process by a fault: killed, or gone by the SIGTERM that a fault sent."""
    if not isinstance(event, RankExited):
        return False
    terminated = event.signal == signal.SIGTERM or event.exit_code == 128 + signal.SIGTERM
    return event.by == "fault" or (event.by == "self" and terminated)


def likely_fault(events: Sequence[AnyEvent], shown: int, attempt: int) -> FaultInjected | None:
    """The last fault that destroyed something before a violation showed at index `shown`, in this attempt.

    Something was destroyed by a fault that killed or stopped, lost or disturbed storage, or injected an error. Of
    these, one that struck the recovery of an earlier attempt counts only where there is no other, because recoveries
    read. None where no fault had landed.
    """
    landed = [event for event in events[:shown] if isinstance(event, FaultInjected)]
    harmful = [fault for fault in landed if _destroyed(fault, landed, events)]
    writing = [fault for fault in harmful if fault.attempt == attempt or not fault.label.endswith("of the recovery")]
    for faults in (writing, harmful, landed):
        if faults:
            return faults[-1]
    return None


def resized(events: Sequence[AnyEvent], evidence: Sequence[int], attempt: int) -> FaultInjected | None:
    """The fault that changed the number of ranks, where the evidence is a state that one number of ranks captured and
    another one loaded; else None."""
    told = [events[index] for index in evidence]
    sizes = {event.digest.world_size for event in told if isinstance(event, SaveStarted | Recovered)}
    if len(sizes) < 2:
        return None
    landed = [event for event in events if isinstance(event, FaultInjected) and "world-size-change" in event.needs]
    return next((fault for fault in reversed(landed) if fault.attempt <= attempt), None)


def root_cause(journal: Journal, verdict: Verdict) -> RootCause:
    """The cause of a verdict's primary violation: its invariant, and where the likely fault struck.

    Where to resume is enough to show it (`inexact-resume`), no fault is to blame. A fault that struck no operation is
    named by its kind in the operation's place. Raises ValueError for a verdict without violation.
    """
    violation = verdict.primary
    if violation is None:
        raise ValueError(f"a verdict of {verdict.outcome} has no root cause")
    fault = likely_fault(journal.events, _shown(journal, violation), violation.attempt)
    if violation.invariant == FULL_STATE:
        # What another number of ranks loads wrong is the change's doing.
        fault = resized(journal.events, violation.evidence, violation.attempt) or fault
    if violation.error_type == INEXACT:
        fault = None
    cause = RootCause(invariant=violation.invariant, error_type=violation.error_type)
    if fault is None:
        return cause
    operation = fault.operation
    return RootCause(
        invariant=cause.invariant,
        stage=fault.label.split(" of ")[0],
        operation=fault.kind if operation is None else operation.address.op,
        file_pattern="" if operation is None else file_pattern(operation.address.path),
        error_type=cause.error_type,
    )


def same_failure(unaided: Violation, found: Violation) -> bool:
    """Whether a violation is what a restart without any fault has shown already: of the same type, about the same step or in the
    same words, for a kill may leave an older step acknowledged while the newest one is loaded.

    What an audit of that restart could not load, no recovery can: it may be seen as an error of the same type or, where the audit
    loaded a wrong state, as one of the invariants about state.
    """
    if (unaided.invariant, unaided.error_type) == (found.invariant, found.error_type):
        return unaided.step == found.step or unaided.seen == found.seen
    if unaided.invariant != "durable-acknowledgement" or unaided.step != found.step:
        return False
    wrong_state = unaided.error_type == "wrong-state" and found.invariant in ("complete-only", FULL_STATE)
    return wrong_state or unaided.error_type == found.error_type


def _shown(journal: Journal, violation: Violation) -> int:
    """Where in the journal the violation shows; what struck later is innocent of it."""
    events = journal.events
    lies = [index for index in violation.evidence if isinstance(events[index], Acknowledged)]
    if lies and any(isinstance(events[index], ErrorInjected) for index in violation.evidence):
        # What was acknowledged after an error was wrong from then on, whenever it was found out.
        return max(lies)
    return max(violation.evidence, default=len(events))


def _place(fault: FaultInjected, events: Sequence[AnyEvent]) -> int:
    return next(index for index, event in enumerate(events) if event is fault)


def _destroyed(fault: FaultInjected, landed: Sequence[FaultInjected], events: Sequence[AnyEvent]) -> bool:
    """True when something of the job or its storage was destroyed by this very fault, as far as the journal tells."""
    same = [event for event in events if event.attempt == fault.attempt]
    if fault.operation is None:
        if any(isinstance(event, StorageDestroyed) and event.cause == fault.kind for event in same):
            return True
        # What was done to files is told just before the fault that did it.
        before = next(
            (event for event in reversed(events[: _place(fault, events)]) if event.attempt == fault.attempt), None
        )
        return isinstance(before, StorageMutated)
    if fault.needs:
        return True
    address = fault.operation.address
    if any(isinstance(event, ErrorInjected) and event.operation.address == address for event in same):
        return True
    # A kill ends the attempt, so of several faults at operations the last one killed.
    last = next(f for f in reversed(landed) if f.attempt == fault.attempt and f.operation is not None)
    return last is fault and any(ended_by_fault(event) for event in same)
