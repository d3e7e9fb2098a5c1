"""Which of the faults that landed is most likely behind a violation."""

from __future__ import annotations

from collections.abc import Sequence

from chaosckpt.model.journal import (
    AnyEvent,
    ErrorInjected,
    FaultInjected,
    Recovered,
    SaveStarted,
    StorageDestroyed,
    StorageMutated,
)
from chaosckpt.oracle.view import ended_by_fault


def guilty(events: Sequence[AnyEvent], shown: int, attempt: int) -> FaultInjected | None:
    """The last fault that destroyed something before a violation showed at index `shown`, in this attempt.

    Something was destroyed by a fault that killed or stopped, lost or changed storage, or injected an error. Of
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
