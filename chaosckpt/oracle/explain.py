"""The oracle's reasoning in plain text: what each attempt had to find, from which lines of the journal, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaosckpt.model.journal import AttemptStarted, Journal, StorageLeft, StorageMutated
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.topology import Topology
from chaosckpt.model.verdict import Verdict
from chaosckpt.oracle.check import BUILT_IN, Judgement, check, judge, view_of
from chaosckpt.oracle.facts import command_storage
from chaosckpt.oracle.facts.audits import checked, unfinished
from chaosckpt.oracle.facts.command import CommandAttempt, CommandView
from chaosckpt.oracle.facts.failures import failure
from chaosckpt.oracle.facts.identity import Identity
from chaosckpt.oracle.facts.lineage import references
from chaosckpt.oracle.facts.recovery import Recovery, recoveries
from chaosckpt.oracle.facts.requirement import required_step
from chaosckpt.oracle.facts.saves import overcome
from chaosckpt.oracle.facts.view import TargetView
from chaosckpt.oracle.invariant import Invariant
from chaosckpt.oracle.phrasing import describe

_REQUIRED = {
    "must-recover": "must recover a checkpoint",
    "may-recover": "need not recover a checkpoint, but one may be left; a checkpoint that it loads must be complete",
    "must-refuse": "must fail: no checkpoint can be left, and the target does not allow a resumed job to start at step 0",
    "may-start": "may start at step 0, because no checkpoint can be left",
}


def explain(scenario: Scenario, journal: Journal, invariants: Sequence[Invariant] = BUILT_IN) -> str:
    """Plain text, one paragraph a recovery or an attempt of a command, and one for the verdict. `#12` is the journal's
    event number 12, counted from 0."""
    verdict = check(scenario, journal, invariants)
    try:
        view = view_of(scenario, journal)
    except ValueError:
        return "\n".join(_verdict(verdict)) + "\n"
    opening = f"#0 {describe(journal.events[0])}"
    if isinstance(view, CommandView):
        paragraphs = [
            f"{opening}\n  judged by: {', '.join(view.start.judged) or 'exit status and hangs only'}",
            *_of_command(view),
        ]
    else:
        paragraphs = [opening, *_of_target(view)]
    paragraphs.append("\n".join([*_verdict(verdict), *_not_judged(view, judge(view, invariants))]))
    return "\n\n".join(paragraphs) + "\n"


def _of_target(view: TargetView) -> Iterator[str]:
    found = recoveries(view)
    yield from ("\n".join(_recovery(view, recovery)) for recovery in found)
    if not found:
        yield "No rank began to recover."
    yield from ("\n".join(part) for part in (_references(view), _audits(view), _disturbed(view)) if part)


def _recovery(view: TargetView, recovery: Recovery) -> Iterator[str]:
    attempt, needed = recovery.attempt, recovery.requirement
    yield f"Recovery of attempt {attempt.number} (#{attempt.start.index} {describe(attempt.start.event)})"
    yield f"  It {_REQUIRED[needed.kind]}."
    yield f"  Required: {needed.required or 'nothing'}"
    yield f"  Accepted: {', '.join(map(str, needed.permitted)) or 'nothing'}"
    for reason in needed.reasons:
        yield f"  - {reason.save}: {reason.words}"
        yield from _lines(view, reason.evidence)
    for words, evidence in needed.notes:
        yield f"  - {words}"
        yield from _lines(view, evidence)
    yield "  Outcome:"
    for track in attempt.tracks:
        if track.recovered is not None:
            yield f"    #{track.recovered.index} {describe(track.recovered.event)}"
        elif track.phase != "absent":
            yield f"    rank {track.rank}: {failure(track)} ({track.phase})"
    for identity in recovery.identities:
        yield f"    the loaded state of {identity.holder.name}: {_shown(identity)}"


def _lines(view: TargetView, evidence: Sequence[int]) -> Iterator[str]:
    for index in sorted(set(evidence)):
        yield f"      #{index} {describe(view.journal.events[index])}"


def _shown(identity: Identity) -> str:
    if not identity.captures:
        return identity.mixture
    which = " = ".join(map(str, identity.captures))
    if identity.exact:
        return f"exactly {which}"
    return f"the parameters of {which}, but " + "; ".join(f"{d.component}: {d.detail}" for d in identity.deviations)


def _references(view: TargetView) -> list[str]:
    found = []
    for number, at in sorted(references(view).items()):
        told = at.event
        path = " -> ".join(f"{Topology(segment.ranks)} from step {segment.since}" for segment in told.lineage)
        steps = [step.step for step in told.steps]
        span = f"steps {steps[0]} to {steps[-1]}" if steps else "no step"
        found.append(f"  #{at.index} attempt {number}, {span}, trained with ranks {path}")
    return ["Reference runs, trained without a checkpointer:", *found] if found else []


def _audits(view: TargetView) -> list[str]:
    found = []
    told: set[int] = set()
    for item in checked(view):
        errors = [error for error in overcome(view, item.save) if error.at.index not in told]
        if item.problem:
            found.append(f"  #{item.index} after attempt {item.attempt}, {item.save}: {item.problem}")
            continue
        told.update(error.at.index for error in errors)
        found.append(f"  #{item.index} after attempt {item.attempt}, {item.save} loads exactly")
        found += [
            f"  #{error.at.index} tolerated: {error}, in {item.save}, which was acknowledged and loads exactly"
            for error in errors
        ]
    found += [f"  #{index} {words}" for words, index in unfinished(view)]
    return ["Audits of acknowledged checkpoints:", *found] if found else []


def _disturbed(view: TargetView) -> list[str]:
    found = [f"  #{at.index} {describe(at.event)}" for at in view.all(StorageMutated)]
    found += [f"  #{at.index} {describe(at.event)}" for at in view.all(StorageLeft)]
    return ["Storage:", *found] if found else []


def _of_command(view: CommandView) -> Iterator[str]:
    yield from ("\n".join(_attempt(view, attempt)) for attempt in view.attempts)
    misfit = command_storage.misfit(view)
    if misfit is not None:
        yield f"Doubt: {misfit}"


def _attempt(view: CommandView, attempt: CommandAttempt) -> Iterator[str]:
    yield f"Attempt {attempt.number} (#{attempt.start.index})"
    if attempt.before is not None:
        lying = command_storage.before(view, attempt)
        for word, steps in (("complete", lying.whole), ("incomplete", lying.torn), ("uncertain", lying.unsure)):
            if steps:
                yield f"  found {word}: {', '.join(f'step {step}' for step in sorted(steps))}"
        required = required_step(view, attempt)
        if required is None:
            yield "  required: nothing"
        else:
            indices = ", ".join(f"#{index}" for index in required.evidence)
            yield f"  required: step {required.step}, because {required.why} ({indices})"
    for at in attempt.events:
        if not isinstance(at.event, AttemptStarted):
            yield f"  #{at.index} {describe(at.event)}"


def _not_judged(view: CommandView | TargetView, found: Judgement) -> Iterator[str]:
    for reason in found.not_judged:
        yield f"  {reason}"
    for broken in found.broken:
        yield f"  {broken}"
    if found.inapplicable:
        what = "commands" if isinstance(view, CommandView) else "targets"
        yield f"  does not apply to {what}: {', '.join(found.inapplicable)}"


def _verdict(verdict: Verdict) -> Iterator[str]:
    yield f"Verdict: {verdict.outcome.upper()}" + (f": {verdict.reason}" if verdict.reason else "")
    if verdict.primary is not None:
        yield f"  {verdict.primary.invariant}: {verdict.primary.sentence}"
        yield "  evidence: events " + ", ".join(f"#{index}" for index in verdict.primary.evidence)
    for other in verdict.others:
        yield f"  also {other.invariant}: {other.sentence}"
    yield f"  judged: {', '.join(verdict.judged) or 'nothing'}"
