"""How the oracle phrases things: events, ranks, ends of processes and the likely fault, as parts of its sentences."""

from __future__ import annotations

from collections.abc import Iterable

from chaosckpt.model import journal as j
from chaosckpt.model.fault import Trigger
from chaosckpt.model.journal import AnyEvent
from chaosckpt.model.phrasing import (
    describe_label,
    describe_moment,
    describe_operation,
    describe_path,
    describe_tier,
    describe_trigger,
    ordinal,
    plural,
)

_HELD = {
    "cut": "job killed",
    "sigkill": "rank {rank} killed",
    "sigterm": "SIGTERM sent",
    "sigstop": "rank {rank} stopped by SIGSTOP",
    "saver-kill": "rank {rank}'s saver process killed",
    "node-loss": "node of rank {rank} lost with its node-local storage",
    "latency": "rank {rank} delayed",
    "hold-until": "rank {rank} held back",
}
"""What the faults that hold an operation do then, by their kind."""
_ANSWERED = {
    "errno": "storage error",
    "short-write": "short write",
    "read-only": "{tier} read-only",
    "unavailable": "{tier} unavailable",
    "space": "{tier} full",
    "not-visible": "file invisible to rank {rank}",
}
"""What the faults that answer an operation themselves do, by their kind."""


def ranks(numbers: Iterable[int]) -> str:
    """`rank 1`, or `ranks 0 and 2`."""
    known = sorted(set(numbers))
    if len(known) == 1:
        return f"rank {known[0]}"
    return f"ranks {', '.join(map(str, known[:-1]))} and {known[-1]}" if known else "no rank"


def tiers(names: Iterable[str]) -> str:
    """`shared storage`, or `node-local storage and shared storage`."""
    return " and ".join(describe_tier(name) for name in sorted(set(names)))


def after_restart(attempt: int, planned: int) -> str:
    """When an attempt ran, to begin a sentence with: attempt N is the Nth restart, of so many that the schedule plans."""
    if attempt == 0:
        return "In attempt 0"
    return "After the restart" if attempt == 1 and planned <= 1 else f"After the {ordinal(attempt)} restart"


def blaming(fault: j.FaultInjected | None, trigger: Trigger | None = None) -> str:
    """A sentence that names a fault as the likely cause; empty where there is none. `trigger` is where the schedule has it."""
    if fault is None:
        return ""
    if fault.operation is None:
        return f" Likely cause: {fault.kind} before attempt {fault.attempt}: {fault.evidence}."
    address = fault.operation.address
    tier = describe_tier(address.path.partition(":")[0])
    what = (_HELD | _ANSWERED).get(fault.kind, fault.kind).format(rank=address.rank, tier=tier)
    moment = describe_moment(address) if trigger is None or fault.kind in _ANSWERED else describe_trigger(trigger)
    doing = describe_label(fault.label)
    during = f" {doing}" if doing and doing not in moment else ""
    return f" Likely cause: {what} in attempt {fault.attempt}{during}: {moment}."


_ENDED_BY = {"fault": "by a fault, ", "self": "", "harness": "cleaned up by chaosckpt, "}
"""Who ended a process, where it was not the process itself."""


def ending(exited: j.RankExited) -> str:
    """How a process ended."""
    if exited.signal is not None:
        return f"was killed by signal {exited.signal}"
    return f"exited with code {exited.exit_code}"


def short(message: str) -> str:
    """The last line of a message, cut to what a sentence can bear."""
    line = next((line.strip() for line in reversed(message.splitlines()) if line.strip()), "no message")
    return line if len(line) <= 200 else line[:197] + "..."


def _attempt_started(event: j.AttemptStarted) -> str:
    nodes = "+".join(map(str, event.ranks))
    closing = ", the closing one," if event.closing else ""
    return f"attempt {event.attempt}{closing} starts with {nodes} ranks, to {event.intent}"


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
            return f"rank {event.rank} has unfinished saves of steps {steps} (attempt {event.attempt})"
        case j.SaveFailed():
            return f"rank {event.rank} fails to save step {event.step} and continues: {event.error_type}: {short(event.message)}"
        case j.Acknowledged():
            where = describe_tier(event.level)
            return f"rank {event.rank} acknowledges step {event.step} as safe on {where} (attempt {event.attempt})"
        case j.RecoveryStarted():
            return f"rank {event.rank} starts to recover (attempt {event.attempt})"
        case j.Recovered():
            chosen = "no checkpoint" if event.chosen is None else f"step {event.chosen}"
            return f"rank {event.rank} finishes recovery and reports {chosen} (attempt {event.attempt})"
        case j.Finished():
            return f"rank {event.rank} finishes at step {event.step} (attempt {event.attempt})"
        case j.Raised():
            return f"rank {event.rank} raises {event.error_type} in {event.where}: {short(event.message)}"
        case j.RankExited():
            return f"rank {event.rank} {ending(event)} ({_ENDED_BY[event.by]}attempt {event.attempt})"
        case j.FaultInjected():
            return f"fault {event.fault} of attempt {event.attempt} ({event.kind}) injected: {event.evidence}"
        case j.FaultNotInjected():
            return f"fault {event.fault} of attempt {event.attempt} ({event.kind}) not injected: {event.reason}"
        case j.StorageDestroyed():
            where = "" if event.node is None else f" of node {event.node}"
            files = plural(event.files, "file")
            return f"{describe_tier(event.tier)}{where} destroyed ({event.cause}, {files})"
        case j.StorageMutated():
            return f"{describe_path(event.path) if event.path else describe_tier(event.tier)}: {event.what}"
        case j.ErrorInjected():
            return f"error injected: {event.error}: {describe_operation(event.operation.address)}"
        case j.Untraced():
            how = "was refused" if event.refused else "performed"
            return f"rank {event.rank} {how} an operation that is not traced: {event.what}"
        case j.AttemptEnded():
            confirmed = ", confirmed" if event.confirmed else ""
            return f"attempt {event.attempt} ended: {event.outcome}{confirmed}"
        case j.Reference():
            return f"the expected training of attempt {event.attempt} from step {event.resumed_from} on"
        case j.Audited():
            seen = "loads" if event.digest is not None else f"does not load: {event.error_type}: {short(event.message)}"
            chosen = "" if event.chosen is None else f" (recovery chose {chosen_by_audit(event.chosen)})"
            return f"audit {audit_of(event.attempt, event.as_of)}, rank {event.rank}: step {event.step} {seen}{chosen}"
        case j.AuditEnded():
            steps = ", ".join(map(str, event.retained)) or "none"
            return f"the audit {audit_of(event.attempt, event.as_of)} {event.outcome}; retained steps: {steps}"
        case j.StorageLeft():
            spare = sum(size for _, size in event.abandoned)
            left = plural(event.files, "file")
            return f"{left} with {plural(event.bytes, 'byte')} left on storage, of which {plural(spare, 'byte')} are abandoned"
        case j.CheckpointsSeen() | j.Said() | j.Probed() | j.ResultCompared():
            return _of_a_command(event)
        case j.HarnessTrouble():
            return f"the harness failed: {event.what}"
        case j.TrialEnded():
            return "the trial ends"


def audit_of(attempt: int, as_of: j.Moment | None) -> str:
    """Which audit it is, to stand behind "the audit"."""
    if as_of is None:
        return f"after attempt {attempt}"
    alone = ", without node-local storage" if as_of.alone else ""
    return f"of storage as it was when attempt {attempt} had acknowledged step {as_of.step} ({as_of.level}{alone})"


def chosen_by_audit(chosen: int) -> str:
    """What an audit chose that recovered."""
    return "nothing" if chosen == j.NOTHING else f"step {chosen}"


def _of_a_command(event: j.CheckpointsSeen | j.Said | j.Probed | j.ResultCompared) -> str:
    match event:
        case j.CheckpointsSeen():
            complete, partial = (", ".join(map(str, steps)) or "none" for steps in (event.complete, event.partial))
            spare = f"; under other names: {', '.join(map(str, event.spare))}" if event.spare else ""
            return f"on storage after attempt {event.attempt}: complete steps: {complete}; incomplete steps: {partial}{spare}"
        case j.Said():
            return f"the command printed in attempt {event.attempt}: {short(event.line)}"
        case j.Probed():
            state = f", state digest {event.digest[:8]}" if event.digest else ""
            return f"rank {event.rank} reports in attempt {event.attempt}: {event.what} step {event.step}{state}"
        case j.ResultCompared():
            return (
                f"the result {'equals' if event.equal else 'differs from'} that of the uninterrupted run: {event.seen}"
            )
