"""The verdict on a trial: every invariant judged from the journal, and doubts about the trial itself.

A violation needs no more evidence than its own events, so it stands whatever else is doubtful, unless the harness
itself failed or the journal is cut off. A pass needs everything: every planned fault with evidence that it landed,
every attempt with its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaosckpt.model.journal import FaultInjected, FaultNotInjected, HarnessTrouble, Journal, TrialEnded, Untraced
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.verdict import Verdict, Violation
from chaosckpt.oracle.failures import ended_before_recovery
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.precedence import BUILT_IN, ranked
from chaosckpt.oracle.view import AttemptView, TrialView


def check(scenario: Scenario, journal: Journal, invariants: Sequence[Invariant] = BUILT_IN) -> Verdict:
    """Judge a trial. Pure: reads the journal only, runs no code of the target, and never raises for a journal cut off
    anywhere."""
    for event in journal.events:
        if isinstance(event, HarnessTrouble):
            return _inconclusive(f"the harness itself failed: {event.what}")
    try:
        view = TrialView(scenario, journal)
    except ValueError as error:
        return _inconclusive(f"{error}; it was cut off or is another file")
    if not isinstance(journal.events[-1], TrialEnded):
        return _inconclusive("the journal was cut off: it doesn't tell the end of the trial")
    violations, judged, broken = _judge(view, invariants)
    if violations:
        first, *others = ranked(violations)
        return Verdict(
            outcome="violation", primary=first, others=tuple(others), reason="; ".join(broken), judged=judged
        )
    doubts = [*broken, *_doubts(view)]
    if doubts:
        return Verdict(outcome="inconclusive", reason="; ".join(doubts), judged=judged)
    return Verdict(outcome="pass", judged=judged)


def _inconclusive(reason: str) -> Verdict:
    return Verdict(outcome="inconclusive", reason=reason)


def _judge(view: TrialView, invariants: Sequence[Invariant]) -> tuple[list[Violation], tuple[str, ...], list[str]]:
    violations: list[Violation] = []
    judged: list[str] = []
    broken: list[str] = []
    for invariant in invariants:
        try:
            found = invariant.judge(view)
        except Exception as error:  # An invariant may be a plugin's; one that breaks must not let a trial pass.
            broken.append(f"the invariant {invariant.name} failed with {type(error).__name__}: {error}")
            continue
        if not isinstance(found, NotJudged):
            judged.append(invariant.name)
            violations += found
    return violations, tuple(judged), broken


def _doubts(view: TrialView) -> Iterator[str]:
    """Why a trial without violation is not a pass, in words."""
    yield from doubtful_faults(view)
    for attempt in view.attempts:
        if attempt.end is None:
            yield f"the journal doesn't tell how attempt {attempt.number} ended"
        elif attempt.end.event.outcome == "hung":
            yield from _doubtful_hang(attempt)
    closing = view.closing
    if closing is None:
        yield "there was no closing attempt"
    elif ended_before_recovery(closing):
        yield "the closing attempt ended before any rank began to recover"
    yield from doubtful_trace(view)


def doubtful_faults(view: TrialView) -> Iterator[str]:
    """Each planned fault that did not land, in words."""
    landed = {(at.event.attempt, at.event.fault) for at in view.all(FaultInjected)}
    missed = {(at.event.attempt, at.event.fault): at.event.reason for at in view.all(FaultNotInjected)}
    for attempt, index, kind in view.planned_faults():
        if (attempt, index) in landed:
            continue
        reason = missed.get((attempt, index), "the journal tells neither that it landed nor that it missed")
        yield f"fault {index} of attempt {attempt} ({kind}) did not land: {reason}"


def _doubtful_hang(attempt: AttemptView) -> Iterator[str]:
    """A confirmed hang is judged by the invariants; survivors of a killed rank may hang."""
    if attempt.rank_was_killed or attempt.hang_confirmed:
        return
    if attempt.hung_in_recovery or attempt.closing or attempt.unharmed:
        yield f"attempt {attempt.number} hung, which was not confirmed by running it alone at three times the deadline"


def doubtful_trace(view: TrialView) -> Iterator[str]:
    """What reached storage past the gate in an attempt in which a fault struck, in words."""
    struck = {at.event.attempt for at in view.all(FaultInjected)}
    for at in view.all(Untraced):
        if at.event.attempt in struck and not at.event.refused:
            yield (
                f"rank {at.event.rank} reached storage past the gate in attempt {at.event.attempt} ({at.event.what}), "
                "so what the fault left there is not what the schedule says"
            )
