"""The oracle's reasoning in plain text: what each recovery owed, from which lines of the journal, and what came of
it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaosckpt.model.journal import Journal, StorageLeft, StorageMutated
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.topology import Topology
from chaosckpt.model.verdict import Verdict
from chaosckpt.oracle.audits import checked, unfinished
from chaosckpt.oracle.identity import Identity
from chaosckpt.oracle.injected import overcome
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.judgement import check
from chaosckpt.oracle.precedence import BUILT_IN
from chaosckpt.oracle.recovery import Recovery, recoveries
from chaosckpt.oracle.traces import references
from chaosckpt.oracle.view import TrialView
from chaosckpt.oracle.words import failure, in_words

_DUTIES = {
    "must-recover": "must recover: a checkpoint is required",
    "may-recover": "may recover: no checkpoint is required, but one may be left; what is loaded has to be complete",
    "must-refuse": "must refuse: no checkpoint can be left, and an empty hand is an error",
    "may-start": "may start at step 0: no checkpoint can be left",
}


def explain(scenario: Scenario, journal: Journal, invariants: Sequence[Invariant] = BUILT_IN) -> str:
    """Plain text, one paragraph a recovery and one for the verdict. `#12` is the journal's event number 12, counted
    from 0."""
    verdict = check(scenario, journal, invariants)
    paragraphs = []
    try:
        view = TrialView(scenario, journal)
    except ValueError:
        view = None
    if view is not None:
        paragraphs.append(f"#0 {in_words(journal.events[0])}")
        found = recoveries(view)
        paragraphs += ["\n".join(_recovery(view, recovery)) for recovery in found]
        if not found:
            paragraphs.append("No rank began to recover.")
        paragraphs += ["\n".join(part) for part in (_references(view), _audits(view), _disturbed(view)) if part]
        paragraphs.append("\n".join([*_verdict(verdict), *_not_judged(view, invariants)]))
    else:
        paragraphs.append("\n".join(_verdict(verdict)))
    return "\n\n".join(paragraphs) + "\n"


def _recovery(view: TrialView, recovery: Recovery) -> Iterator[str]:
    attempt, owed = recovery.attempt, recovery.owed
    yield f"Recovery of attempt {attempt.number} (#{attempt.start.index} {in_words(attempt.start.event)})"
    yield f"  It {_DUTIES[owed.duty]}."
    yield f"  Required: {owed.required or 'nothing'}"
    yield f"  Permitted: {', '.join(map(str, owed.permitted)) or 'nothing'}"
    for reason in owed.reasons:
        yield f"  - {reason.save}: {reason.words}"
        yield from _lines(view, reason.evidence)
    for words, evidence in owed.notes:
        yield f"  - {words}"
        yield from _lines(view, evidence)
    yield "  What came of it:"
    for track in attempt.tracks:
        if track.recovered is not None:
            yield f"    #{track.recovered.index} {in_words(track.recovered.event)}"
        elif track.phase != "absent":
            yield f"    rank {track.rank}: {failure(track)} ({track.phase})"
    for identity in recovery.identities:
        yield f"    the live state of {identity.subject.name}: {_shown(identity)}"


def _lines(view: TrialView, evidence: Sequence[int]) -> Iterator[str]:
    for index in sorted(set(evidence)):
        yield f"      #{index} {in_words(view.journal.events[index])}"


def _shown(identity: Identity) -> str:
    if not identity.captures:
        return identity.mixture
    which = " = ".join(map(str, identity.captures))
    if identity.exact:
        return f"exactly {which}"
    return f"the parameters of {which}, but " + "; ".join(f"{d.component}: {d.detail}" for d in identity.deviations)


def _references(view: TrialView) -> list[str]:
    found = []
    for number, at in sorted(references(view).items()):
        told = at.event
        path = " -> ".join(f"{Topology(segment.ranks)} from step {segment.since}" for segment in told.lineage)
        steps = [step.step for step in told.steps]
        span = f"steps {steps[0]} to {steps[-1]}" if steps else "no step"
        found.append(f"  #{at.index} attempt {number}, {span}, trained by ranks {path}")
    return ["References, trained without any checkpointer:", *found] if found else []


def _audits(view: TrialView) -> list[str]:
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
            f"  #{error.at.index} tolerated: {error}, in {item.save}, which was acknowledged and loads"
            for error in errors
        ]
    found += [f"  #{index} {words}" for words, index in unfinished(view)]
    return ["Audits of acknowledged checkpoints:", *found] if found else []


def _disturbed(view: TrialView) -> list[str]:
    found = [f"  #{at.index} {in_words(at.event)}" for at in view.all(StorageMutated)]
    found += [f"  #{at.index} {in_words(at.event)}" for at in view.all(StorageLeft)]
    return ["Storage:", *found] if found else []


def _not_judged(view: TrialView, invariants: Sequence[Invariant]) -> Iterator[str]:
    for invariant in invariants:
        try:
            found = invariant.judge(view)
        except Exception as error:  # The verdict names an invariant that broke; here it must not hide the others.
            yield f"  not judged: {invariant.name}: {type(error).__name__}: {error}"
            continue
        if isinstance(found, NotJudged):
            yield f"  not judged: {invariant.name}: {found.reason}"


def _verdict(verdict: Verdict) -> Iterator[str]:
    yield f"Verdict: {verdict.outcome.upper()}" + (f": {verdict.reason}" if verdict.reason else "")
    if verdict.primary is not None:
        yield f"  {verdict.primary.invariant}: {verdict.primary.sentence}"
        yield "  shown by " + ", ".join(f"#{index}" for index in verdict.primary.evidence)
    for other in verdict.others:
        yield f"  also {other.invariant}: {other.sentence}"
    yield f"  judged: {', '.join(verdict.judged) or 'nothing'}"
