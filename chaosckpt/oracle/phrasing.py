"""How the oracle phrases things: events, ranks, ends of processes and the likely fault, as parts of its sentences."""

from __future__ import annotations

from collections.abc import Iterable

from chaosckpt.model import journal as j
from chaosckpt.model.journal import AnyEvent


def ranks(numbers: Iterable[int]) -> str:
    """`rank 1`, or `ranks 0 and 2`."""
    known = sorted(set(numbers))
    if len(known) == 1:
        return f"rank {known[0]}"
    return f"ranks {', '.join(map(str, known[:-1]))} and {known[-1]}" if known else "no rank"


def blaming(fault: j.FaultInjected | None) -> str:
    """A sentence that names a fault as the one most likely behind something; empty where there is none."""
    if fault is None:
        return ""
    where = f" at {fault.operation.address}" if fault.operation is not None else ""
    label = f" ({fault.label})" if fault.label else ""
    return f" The fault most likely behind it: {fault.kind}{where}{label}, in attempt {fault.attempt}."


def ending(exited: j.RankExited) -> str:
    """How a process ended."""
    if exited.signal is not None:
        return f"ended by signal {exited.signal}"
    return f"exit code {exited.exit_code}"


def short(message: str) -> str:
    """The last line of a message, cut to what a sentence can bear."""
    line = next((line.strip() for line in reversed(message.splitlines()) if line.strip()), "no message")
    return line if len(line) <= 200 else line[:197] + "..."


def _attempt_started(event: j.AttemptStarted) -> str:
    nodes = "+".join(map(str, event.ranks))
    closing = ", the closing one," if event.closing else ""
    return f"attempt {event.attempt}{closing} starts with ranks {nodes}, told to {event.intent}"


def describe(event: AnyEvent) -> str:  # noqa: C901 - one line for each kind of event, and no other logic
    """One event as a phrase."""
    match event:
        case j.TrialStarted():
            return f"trial {event.trial} of {event.scenario}; guarantees: {', '.join(event.guarantees) or 'none'}"
        case j.AttemptStarted():
            return _attempt_started(event)
        case j.SaveStarted():
            return f"rank {event.rank} starts the save of step {event.step} (attempt {event.attempt})"
        case j.Outstanding():
            steps = ", ".join(map(str, event.saves))
            return f"rank {event.rank} has the saves of these steps under way: {steps} (attempt {event.attempt})"
        case j.SaveFailed():
            return f"rank {event.rank} fails to save step {event.step} and goes on: {event.error_type}: {short(event.message)}"
        case j.Acknowledged():
            return (
                f"rank {event.rank} is told that step {event.step} is safe on {event.level} (attempt {event.attempt})"
            )
        case j.RecoveryStarted():
            return f"rank {event.rank} starts to recover (attempt {event.attempt})"
        case j.Recovered():
            chosen = "Nothing" if event.chosen is None else f"step {event.chosen}"
            return f"rank {event.rank} recovered: it says {chosen} (attempt {event.attempt})"
        case j.Finished():
            return f"rank {event.rank} finished at step {event.step} (attempt {event.attempt})"
        case j.Raised():
            return f"rank {event.rank} raised {event.error_type} in {event.where}: {short(event.message)}"
        case j.RankExited():
            return f"rank {event.rank} {ending(event)}, by {event.by} (attempt {event.attempt})"
        case j.FaultInjected():
            return f"fault {event.fault} of attempt {event.attempt} ({event.kind}) landed: {event.evidence}"
        case j.FaultNotInjected():
            return f"fault {event.fault} of attempt {event.attempt} ({event.kind}) missed: {event.reason}"
        case j.StorageDestroyed():
            where = "" if event.node is None else f" of node {event.node}"
            return f"{event.tier} storage{where} destroyed ({event.cause}, {event.files} files)"
        case j.StorageMutated():
            return f"{event.path or event.tier}: {event.what}"
        case j.ErrorInjected():
            return f"{event.error} injected into rank {event.rank}: {event.operation.address}"
        case j.Untraced():
            return f"rank {event.rank} {'tried to pass' if event.refused else 'passed'} the gate by: {event.what}"
        case j.AttemptEnded():
            confirmed = ", confirmed" if event.confirmed else ""
            return f"attempt {event.attempt} ended: {event.outcome}{confirmed}"
        case j.Reference():
            return f"what attempt {event.attempt} should have trained from step {event.resumed_from} on"
        case j.Audited():
            seen = (
                "loads" if event.digest is not None else f"can't be loaded: {event.error_type}: {short(event.message)}"
            )
            return f"audit after attempt {event.attempt}: step {event.step} {seen} on rank {event.rank}"
        case j.AuditEnded():
            steps = ", ".join(map(str, event.retained)) or "none"
            return f"the audit after attempt {event.attempt} ended: {event.outcome}; retained: {steps}"
        case j.StorageLeft():
            spare = sum(size for _, size in event.abandoned)
            return f"{event.files} files with {event.bytes} bytes are left, {spare} bytes of them abandoned"
        case j.CheckpointsSeen() | j.Said() | j.Probed() | j.ResultCompared():
            return _of_a_command(event)
        case j.HarnessTrouble():
            return f"harness trouble: {event.what}"
        case j.TrialEnded():
            return "the trial ended"


def _of_a_command(event: j.CheckpointsSeen | j.Said | j.Probed | j.ResultCompared) -> str:
    match event:
        case j.CheckpointsSeen():
            complete, partial = (", ".join(map(str, steps)) or "none" for steps in (event.complete, event.partial))
            spare = f"; under other names {', '.join(map(str, event.spare))}" if event.spare else ""
            return f"on storage after attempt {event.attempt}: complete steps {complete}; partial {partial}{spare}"
        case j.Said():
            return f"the command said in attempt {event.attempt}: {short(event.line)}"
        case j.Probed():
            state = f", its state {event.digest[:8]}" if event.digest else ""
            return f"rank {event.rank} told in attempt {event.attempt}: {event.what} step {event.step}{state}"
        case j.ResultCompared():
            return f"the result is {'equal to' if event.equal else 'not'} that of the uninterrupted run: {event.seen}"
