"""Root causes: what makes the violations of many trials one finding."""

from __future__ import annotations

from chaosckpt.model.finding import RootCause, file_pattern
from chaosckpt.model.journal import Acknowledged, ErrorInjected, Journal
from chaosckpt.model.verdict import Verdict, Violation
from chaosckpt.oracle.commands.storage import INEXACT
from chaosckpt.oracle.guilt import guilty, resized
from chaosckpt.oracle.invariants.full_state import full_state


def root_cause(journal: Journal, verdict: Verdict) -> RootCause:
    """The cause of a verdict's primary violation: its invariant, and where the guilty fault struck.

    Where to resume is enough to show it (`inexact-resume`), no fault is guilty.
    A fault that struck no operation is named by its kind in the operation's place; which fault is guilty, guilt.py
    says. Raises ValueError for a verdict without violation.
    """
    violation = verdict.primary
    if violation is None:
        raise ValueError(f"a verdict of {verdict.outcome} has no root cause")
    fault = guilty(journal.events, _shown(journal, violation), violation.attempt)
    if violation.invariant == full_state.name:
        # What another number of ranks loads wrong is the change's doing, wherever the job was interrupted before.
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


def _shown(journal: Journal, violation: Violation) -> int:
    """Where in the journal the violation shows; what struck later is innocent of it."""
    events = journal.events
    lies = [index for index in violation.evidence if isinstance(events[index], Acknowledged)]
    if lies and any(isinstance(events[index], ErrorInjected) for index in violation.evidence):
        # What was acknowledged after an error was wrong from then on, whenever it was found out.
        return max(lies)
    return max(violation.evidence, default=len(events))
