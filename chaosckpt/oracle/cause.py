"""Root causes: what makes the violations of many trials one finding."""

from __future__ import annotations

from collections.abc import Sequence

from chaosckpt.model.finding import RootCause, file_pattern
from chaosckpt.model.journal import AnyEvent, ErrorInjected, FaultLanded, Journal, StorageDestroyed
from chaosckpt.model.verdict import Verdict
from chaosckpt.oracle.view import ended_by_fault


def root_cause(journal: Journal, verdict: Verdict) -> RootCause:
    """The cause of a verdict's primary violation: its invariant, and where the guilty fault struck.

    Guilty is the last fault that destroyed something (killed, lost storage, injected an error) before the violation
    showed. A fault that struck no operation is named by its kind in the operation's place. Raises ValueError for a
    verdict without violation.
    """
    violation = verdict.primary
    if violation is None:
        raise ValueError(f"a verdict of {verdict.outcome} has no root cause")
    shown = max(violation.evidence, default=len(journal.events))
    guilty = _guilty(journal.events, shown)
    cause = RootCause(invariant=violation.invariant, error_type=violation.error_type)
    if guilty is None:
        return cause
    operation = guilty.operation
    return RootCause(
        invariant=cause.invariant,
        stage=guilty.label.split(" of ")[0],
        operation=guilty.kind if operation is None else operation.address.op,
        file_pattern="" if operation is None else file_pattern(operation.address.path),
        error_type=cause.error_type,
    )


def _guilty(events: Sequence[AnyEvent], shown: int) -> FaultLanded | None:
    landed = [event for event in events[:shown] if isinstance(event, FaultLanded)]
    destructive = (fault for fault in reversed(landed) if _destroyed(fault, landed, events))
    return next(destructive, landed[-1] if landed else None)


def _destroyed(fault: FaultLanded, landed: Sequence[FaultLanded], events: Sequence[AnyEvent]) -> bool:
    """True when something of the job or its storage was destroyed by this very fault, as far as the journal tells."""
    same = [event for event in events if event.attempt == fault.attempt]
    if fault.operation is None:
        return any(isinstance(event, StorageDestroyed) and event.cause == fault.kind for event in same)
    address = fault.operation.address
    if any(isinstance(event, ErrorInjected) and event.operation.address == address for event in same):
        return True
    # A kill ends the attempt, so of several faults at operations the last one killed.
    last = next(f for f in reversed(landed) if f.attempt == fault.attempt and f.operation is not None)
    return last is fault and any(ended_by_fault(event) for event in same)
