"""bounded-saves: saves under way stay within the bound, the last one is finished before an orderly end, and an error in
a save surfaces."""

from __future__ import annotations

from collections.abc import Iterator

from chaosckpt.model.journal import Finished, Outstanding, Raised, SaveFailed
from chaosckpt.model.phrasing import plural
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts.audits import loads
from chaosckpt.oracle.facts.saves import Injected, Save, injected, save_of, saves
from chaosckpt.oracle.facts.view import TargetAttempt, TargetView
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.phrasing import ranks

NAME = "bounded-saves"

WAITING = ("await", "close")
"""What a script does before an orderly end that obliges the target to finish its saves, or to say what went wrong."""


def _of_target(view: TargetView) -> list[Violation] | NotJudged:
    found: list[Violation] = []
    judged = 0
    for attempt in view.attempts:
        judged += bool(attempt.all(Outstanding))
        found += _backlog(view, attempt)
        if attempt.finished and view.start.at_end in WAITING:
            judged += any(save.attempt == attempt.number for save in saves(view))
            found += _ends(view, attempt)
    return (
        found
        if judged
        else NotJudged("no save was still unfinished when save() returned, and no attempt with saves ended in order")
    )


def _backlog(view: TargetView, attempt: TargetAttempt) -> Iterator[Violation]:
    """More saves under way than the target says it lets be."""
    bound = view.start.outstanding
    over = min(
        (at for at in attempt.all(Outstanding) if len(at.event.saves) > bound),
        key=lambda at: (at.event.step, at.event.rank),
        default=None,
    )
    if over is None:
        return
    rank, step = over.event.rank, over.event.step
    steps = ", ".join(map(str, over.event.saves))
    words = (
        f"rank {rank} had {plural(len(over.event.saves), 'unfinished save')} (steps {steps}) after save() of step {step} returned, "
        f"but the target declares at most {bound}"
    )
    seen = f"{plural(len(over.event.saves), 'unfinished save')}: steps {steps}"
    yield _out_of_bounds(
        view, attempt, words, f"at most {plural(bound, 'unfinished save')}", seen, "backlog", (rank, step, over.index)
    )


def _ends(view: TargetView, attempt: TargetAttempt) -> Iterator[Violation]:
    """Saves that an orderly end left neither finished nor failed."""
    told: set[int] = set()
    end = max((at.index for at in attempt.all(Finished)), default=attempt.start.index)
    for error in injected(attempt):
        if error.labelled and error.step not in told and _swallowed(view, attempt, error):
            told.add(error.step)
            rank = error.at.event.rank
            words = (
                f"{error}, while saving step {error.step}; no rank acknowledged this save and no rank raised an error, "
                "but every rank exited with code 0"
            )
            seen = "no acknowledgement and no error"
            right = f"an acknowledgement of step {error.step}, or an error"
            yield _out_of_bounds(view, attempt, words, right, seen, "swallowed-error", (rank, error.step, end))
    for save in saves(view):
        if save.attempt == attempt.number and save.step not in told and _unfinished(view, attempt, save):
            silent = [rank for rank in save.started if not save.acknowledged.get(rank)]
            manner = "waited for its saves" if view.start.at_end == "await" else "closed the target"
            left = "never acknowledged" if view.start.at_end == "await" else "not loadable afterwards"
            words = (
                f"every rank {manner} and exited with code 0 and without an error, but the save of step {save.step} was {left} "
                f"(no acknowledgement on {ranks(silent)})"
            )
            right = f"the save of step {save.step} finished before the job ended, or an error"
            yield _out_of_bounds(view, attempt, words, right, left, "unfinished-save", (min(silent), save.step, end))


def _surfaced(attempt: TargetAttempt) -> bool:
    return bool(attempt.all(Raised) or attempt.all(SaveFailed))


def _swallowed(view: TargetView, attempt: TargetAttempt, error: Injected) -> bool:
    save = save_of(view, attempt.number, error.step)
    if save is None or save.status == "acknowledged" or _surfaced(attempt):
        return False
    # Without awaiting there is no acknowledgement to be had: only storage tells whether the error was overcome.
    return view.start.at_end == "await" or loads(view, attempt, error.step) is False


def _unfinished(view: TargetView, attempt: TargetAttempt, save: Save) -> bool:
    if save.status == "acknowledged" or not save.started_by_all or _surfaced(attempt):
        return False
    # Only the newest save has to be there at the end: older ones may have been retired.
    newest = not any(other.attempt == save.attempt and other.step > save.step for other in saves(view))
    return view.start.at_end == "await" or (newest and loads(view, attempt, save.step) is False)


def _out_of_bounds(
    view: TargetView,
    attempt: TargetAttempt,
    words: str,
    expected: str,
    seen: str,
    slug: str,
    where: tuple[int, int, int],
) -> Violation:
    rank, step, index = where
    return view.violation(
        NAME,
        f"In attempt {attempt.number}, {words}.",
        attempt=attempt.number,
        rank=rank,
        step=step,
        error_type=slug,
        evidence=(index,),
        expected=expected,
        seen=seen,
    )


bounded_saves = Invariant(
    name=NAME,
    holds=(
        "no more saves are unfinished at once than the target declares, the last save is finished before the job ends in order, "
        "and an error in a save is raised"
    ),
    of_target=_of_target,
)
