"""reported-step: the step that the target says it chose is the step that the live state shows."""

from __future__ import annotations

from chaosckpt.model.journal import Recovered
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts.recovery import Recovery, leaked, recoveries
from chaosckpt.oracle.facts.saves import Save
from chaosckpt.oracle.facts.view import At, TargetView
from chaosckpt.oracle.invariant import Invariant, NotJudged

NAME = "reported-step"


def _of_target(view: TargetView) -> list[Violation] | NotJudged:
    found, judged = [], 0
    for recovery in recoveries(view):
        for answer in recovery.loaded:
            shown = recovery.shown(answer.event.rank)
            judged += bool(shown)
            if shown and answer.event.chosen not in {save.step for save in shown}:
                found.append(
                    _misreported(view, recovery, answer, f"the state of the rank is that of {shown[0]}", shown[0])
                )
        for answer in recovery.empty:
            judged += 1
            leak = leaked(view, recovery, answer)
            if leak is not None:
                name, save = leak
                found.append(
                    _misreported(view, recovery, answer, f"the parameter {name} of the rank is that of {save}", save)
                )
    return found if judged else NotJudged("no rank's loaded state could be found in a save")


def _misreported(view: TargetView, recovery: Recovery, answer: At[Recovered], seen: str, save: Save) -> Violation:
    said = "no checkpoint" if answer.event.chosen is None else f"step {answer.event.chosen}"
    return view.violation(
        NAME,
        f"{view.after_restart(recovery.attempt.number)}, the target reported to rank {answer.event.rank} that it loaded {said}, "
        f"but {seen}.",
        attempt=recovery.attempt.number,
        rank=answer.event.rank,
        step=save.step,
        error_type="wrong-step" if answer.event.chosen is not None else "leftover-state",
        evidence=(save.first_index, answer.index),
        expected=f"the state of {said}" if answer.event.chosen is not None else "the initial state",
        seen=seen,
        shown=answer.index,
    )


reported_step = Invariant(
    name=NAME,
    holds="the step that the target reports is the step of the loaded state",
    of_target=_of_target,
)
