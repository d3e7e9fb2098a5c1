"""report-truth: the step that the target says it chose is the step that the live state shows."""

from __future__ import annotations

from chaosckpt.model.journal import Recovered
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.recovery import Recovery, leaked, recoveries
from chaosckpt.oracle.saves import Save
from chaosckpt.oracle.view import At, TrialView
from chaosckpt.oracle.words import aftermath, struck_path


def _judge(view: TrialView) -> list[Violation] | NotJudged:
    found, subjects = [], 0
    for recovery in recoveries(view):
        for answer in recovery.loaded:
            shown = recovery.shown(answer.event.rank)
            subjects += bool(shown)
            if shown and answer.event.chosen not in {save.step for save in shown}:
                found.append(_violation(view, recovery, answer, f"its live state is that of {shown[0]}", shown[0]))
        for answer in recovery.empty:
            subjects += 1
            leak = leaked(view, recovery, answer)
            if leak is not None:
                name, save = leak
                found.append(_violation(view, recovery, answer, f"its parameter {name} is that of {save}", save))
    return found if subjects else NotJudged("no rank's loaded state could be identified")


def _violation(view: TrialView, recovery: Recovery, answer: At[Recovered], seen: str, save: Save) -> Violation:
    said = "Nothing" if answer.event.chosen is None else f"step {answer.event.chosen}"
    return Violation(
        invariant=report_truth.name,
        sentence=(
            f"In attempt {recovery.attempt.number} the target told rank {answer.event.rank} it recovered {said}, "
            f"but {seen}.{aftermath(view, answer.index, recovery.attempt.number)}"
        ),
        attempt=recovery.attempt.number,
        rank=answer.event.rank,
        step=save.step,
        path=struck_path(view, answer.index, recovery.attempt.number),
        expected=f"the state of {said}" if answer.event.chosen is not None else "the state at the beginning",
        seen=seen,
        error_type="wrong-step" if answer.event.chosen is not None else "leftover-state",
        evidence=(save.first_index, answer.index),
    )


report_truth = Invariant(
    name="report-truth",
    holds="the step that the target says it chose is the step that the loaded state shows",
    judge=_judge,
)
