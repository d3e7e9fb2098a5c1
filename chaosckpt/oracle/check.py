"""The verdict on a trial: every invariant judged from the journal, and doubts about the trial itself.

A violation needs no more evidence than its own events, so it stands whatever else is doubtful, unless the harness
itself failed or the journal is cut off. A pass needs everything: every planned fault with evidence that it landed,
every attempt with its end, every invariant at work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from chaosckpt.model.journal import FaultInjected, FaultNotInjected, HarnessTrouble, Journal, TrialEnded, Untraced
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.verdict import Outcome, Verdict, Violation
from chaosckpt.oracle.facts import command_storage
from chaosckpt.oracle.facts.command import CommandView
from chaosckpt.oracle.facts.failures import ended_before_recovery, excuse
from chaosckpt.oracle.facts.view import TargetAttempt, TargetView
from chaosckpt.oracle.invariant import Invariant, NotJudged, View
from chaosckpt.oracle.invariants.always_recoverable import always_recoverable
from chaosckpt.oracle.invariants.bounded_leftovers import bounded_leftovers
from chaosckpt.oracle.invariants.bounded_saves import bounded_saves
from chaosckpt.oracle.invariants.clear_failure import clear_failure
from chaosckpt.oracle.invariants.complete_only import complete_only
from chaosckpt.oracle.invariants.durable_acknowledgement import durable_acknowledgement
from chaosckpt.oracle.invariants.exactly_once_data import exactly_once_data
from chaosckpt.oracle.invariants.full_state import full_state
from chaosckpt.oracle.invariants.newest_complete import newest_complete
from chaosckpt.oracle.invariants.progress import progress
from chaosckpt.oracle.invariants.rank_agreement import rank_agreement
from chaosckpt.oracle.invariants.reported_step import reported_step
from chaosckpt.oracle.invariants.result_equal import result_equal
from chaosckpt.oracle.invariants.trajectory import trajectory

BUILT_IN: tuple[Invariant, ...] = (
    complete_only,
    rank_agreement,
    reported_step,
    full_state,
    exactly_once_data,
    trajectory,
    durable_acknowledgement,
    newest_complete,
    always_recoverable,
    result_equal,
    clear_failure,
    bounded_saves,
    progress,
    bounded_leftovers,
)
"""In the order of precedence. Wrong state that passes for right comes first, then a loss of the checkpoint, then how
the job ended: the earlier ones usually cause the later ones. Invariants of plugins come after these, by name."""

_ORDER = {invariant.name: place for place, invariant in enumerate(BUILT_IN)}


def _precedence(name: str) -> tuple[int, str]:
    return _ORDER.get(name, len(_ORDER)), name


_SILENT = {invariant.name for invariant in BUILT_IN[: BUILT_IN.index(durable_acknowledgement)]} | {result_equal.name}
"""Wrong state that passes for right."""
_LOSS = frozenset({durable_acknowledgement.name, newest_complete.name, always_recoverable.name})
_LEFTOVERS = frozenset({bounded_saves.name, bounded_leftovers.name})


def gravity(invariant: str, error_type: str) -> tuple[int, int, str]:
    """By which findings are ordered, the gravest first: silent wrong state, lost acknowledged checkpoints, refusals, hangs, leftovers;
    what a plugin's invariant finds comes before the leftovers."""
    if invariant in _SILENT:
        rank = 0
    elif invariant in _LOSS:
        rank = 1
    elif invariant in _LEFTOVERS:
        rank = 5
    elif invariant not in _ORDER:
        rank = 4
    else:
        rank = 3 if error_type == "hang" else 2
    return rank, *_precedence(invariant)


def ranked(violations: Iterable[Violation]) -> list[Violation]:
    """The primary violation first: by precedence, then the earliest attempt, then the lowest rank."""
    return sorted(
        violations,
        key=lambda v: (_precedence(v.invariant), v.attempt, -1 if v.rank is None else v.rank, v.sentence),
    )


def check(scenario: Scenario, journal: Journal, invariants: Sequence[Invariant] = BUILT_IN) -> Verdict:
    """Judge a trial of a target or of a command. Pure: reads the journal only, runs no code of what was tested, and never
    raises for a journal cut off anywhere."""
    for event in journal.events:
        if isinstance(event, HarnessTrouble):
            return _inconclusive(f"chaosckpt itself failed: {event.what}")
    try:
        view = view_of(scenario, journal)
    except ValueError as error:
        return _inconclusive(f"{error}; the journal was cut off, or this file is no journal")
    if not isinstance(journal.events[-1], TrialEnded):
        return _inconclusive("the journal was cut off: it has no end of the trial")
    found = judge(view, invariants)
    # What would be judged with one more option is said of commands only: a target has no such options.
    unjudged = found.not_judged if isinstance(view, CommandView) else ()
    if found.violations:
        first, *others = ranked(found.violations)
        return Verdict(
            outcome="violation",
            primary=first,
            others=tuple(others),
            reason="; ".join(found.broken),
            judged=found.judged,
            unjudged=unjudged,
            gaps=found.gaps,
        )
    doubts = "; ".join([*found.broken, *_doubts(view)])
    outcome: Outcome = "inconclusive" if doubts else "pass"
    return Verdict(outcome=outcome, reason=doubts, judged=found.judged, unjudged=unjudged, gaps=found.gaps)


def _inconclusive(reason: str) -> Verdict:
    return Verdict(outcome="inconclusive", reason=reason)


def view_of(scenario: Scenario, journal: Journal) -> View:
    """The journal as a trial of what the scenario tests. Raises ValueError where it doesn't begin with the start of a trial."""
    return TargetView(scenario, journal) if scenario.command is None else CommandView(scenario, journal)


@dataclass(frozen=True)
class Judgement:
    """What the invariants said of one trial: each judged it, said why not, doesn't apply to such trials, or broke."""

    violations: tuple[Violation, ...]
    judged: tuple[str, ...]
    not_judged: tuple[str, ...]
    """In words, with the reasons."""
    gaps: tuple[str, ...]
    """Those of them that the trial ought to have shown, with reasons that hold for any such trial."""
    inapplicable: tuple[str, ...]
    broken: tuple[str, ...]
    """In words, with the exceptions."""


def judge(view: View, invariants: Iterable[Invariant]) -> Judgement:
    """Ask every invariant, in the order of precedence."""
    violations: list[Violation] = []
    judged, not_judged, gaps, inapplicable, broken = [], [], [], [], []
    for invariant in sorted(invariants, key=lambda invariant: _precedence(invariant.name)):
        if not invariant.applies_to(view):
            inapplicable.append(invariant.name)
            continue
        try:
            found = invariant.judge(view)
        except Exception as error:  # An invariant may be a plugin's; one that breaks must not let a trial pass.
            broken.append(f"the invariant {invariant.name} raised {type(error).__name__}: {error}")
            continue
        if isinstance(found, NotJudged):
            not_judged.append(f"{invariant.name} was not judged: {found.reason}")
            gaps += [f"{invariant.name} was not judged: {found.gap}"] if found.gap else []
        else:
            judged.append(invariant.name)
            violations += found
    return Judgement(
        tuple(violations), tuple(judged), tuple(not_judged), tuple(gaps), tuple(inapplicable), tuple(broken)
    )


def _doubts(view: View) -> Iterator[str]:
    """Why a trial without violation is not a pass, in words."""
    yield from _doubtful_faults(view)
    yield from _doubtful_attempts_of_command(view) if isinstance(view, CommandView) else _doubtful_attempts(view)
    yield from _doubtful_trace(view)


def _doubtful_faults(view: View) -> Iterator[str]:
    """Each planned fault that did not land, in words, but for those that an earlier error of their attempt excuses."""
    landed = {(at.event.attempt, at.event.fault) for at in view.all(FaultInjected)}
    missed = {(at.event.attempt, at.event.fault): at.event for at in view.all(FaultNotInjected)}
    for attempt, index, kind in view.planned_faults():
        event = missed.get((attempt, index))
        if (attempt, index) in landed or (event is not None and event.excused):
            continue
        reason = "the journal has no evidence of the fault" if event is None else event.reason
        yield f"fault {index} of attempt {attempt} ({kind}) was not injected: {reason}"


def _doubtful_attempts(view: TargetView) -> Iterator[str]:
    for attempt in view.attempts:
        if attempt.end is None:
            yield f"the journal has no end of attempt {attempt.number}"
        elif attempt.end.event.outcome == "hung" and _is_doubtful_hang(attempt):
            yield _unconfirmed(attempt.number)
    if view.closing is None:
        yield "the trial has no closing attempt"
    elif ended_before_recovery(view.closing):
        yield "the closing attempt ended before any rank began to recover"


def _is_doubtful_hang(attempt: TargetAttempt) -> bool:
    """A confirmed hang is judged by the invariants; survivors of a killed rank may hang."""
    if attempt.rank_was_killed or attempt.hang_confirmed:
        return False
    return bool(attempt.hung_in_recovery) or attempt.closing or attempt.unharmed


def _doubtful_attempts_of_command(view: CommandView) -> Iterator[str]:
    for attempt in view.attempts:
        excused = excuse(view, attempt)
        if attempt.end is None:
            yield f"the journal has no end of attempt {attempt.number}"
        elif attempt.outcome == "hung" and not attempt.killed and not attempt.end.event.confirmed:
            yield _unconfirmed(attempt.number)
        elif excused is not None:
            yield f"attempt {attempt.number} failed, but {excused}"
    if view.closing is None:
        yield "the trial has no closing attempt"
    misfit = command_storage.misfit(view)
    if misfit is not None:
        yield str(misfit)


def _unconfirmed(attempt: int) -> str:
    return f"attempt {attempt} hung, but no run of it alone with three times the deadline confirmed the hang"


def _doubtful_trace(view: View) -> Iterator[str]:
    """What reached storage past the gate in an attempt in which a fault struck, in words."""
    struck = {at.event.attempt for at in view.all(FaultInjected)}
    for at in view.all(Untraced):
        if at.event.attempt in struck and not at.event.refused:
            yield (
                f"rank {at.event.rank} wrote to storage in attempt {at.event.attempt} by a way that chaosckpt does not trace "
                f"({at.event.what}), so the fault may have left other bytes on storage than the schedule says"
            )
