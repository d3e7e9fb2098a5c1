"""rank-agreement: every rank resumed the same step and the same generation, or all of them nothing."""

from __future__ import annotations

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts.recovery import Recovery, recoveries
from chaosckpt.oracle.facts.view import TargetView
from chaosckpt.oracle.invariant import Invariant, NotJudged

NAME = "rank-agreement"


def _of_target(view: TargetView) -> list[Violation] | NotJudged:
    judged = [recovery for recovery in recoveries(view) if len(recovery.loaded) + len(recovery.empty) > 1]
    if not judged:
        return NotJudged("no recovery finished on more than one rank")
    return [violation for recovery in judged for violation in _disagreement(view, recovery)]


def _disagreement(view: TargetView, recovery: Recovery) -> list[Violation]:
    answers = recovery.attempt.recovered
    said = {at.event.rank: "no checkpoint" if at.event.chosen is None else f"step {at.event.chosen}" for at in answers}
    if len(set(said.values())) > 1:
        return [_differ(view, recovery, said, "different-steps")]
    shown = {at.event.rank: recovery.shown(at.event.rank) for at in recovery.loaded}
    known = {rank: {save.key for save in saves} for rank, saves in shown.items() if saves}
    if len(known) > 1 and not set.intersection(*known.values()):
        generations = {rank: str(shown[rank][0]) for rank in known}
        return [_differ(view, recovery, generations, "different-generations")]
    return []


def _differ(view: TargetView, recovery: Recovery, held: dict[int, str], slug: str) -> Violation:
    seen = ", ".join(f"rank {rank} has {what}" for rank, what in sorted(held.items()))
    first = held[min(held)]
    odd = next(rank for rank in sorted(held) if held[rank] != first)
    return view.violation(
        NAME,
        f"{view.after_restart(recovery.attempt.number)}, the ranks resumed from different checkpoints: {seen}.",
        attempt=recovery.attempt.number,
        rank=odd,
        step=recovery.answer(odd).event.chosen,
        error_type=slug,
        evidence=sorted(at.index for at in recovery.attempt.recovered),
        expected="the same save on every rank",
        seen=seen,
    )


rank_agreement = Invariant(
    name=NAME,
    holds="every rank resumes from the same save, or every rank starts without a checkpoint",
    of_target=_of_target,
)
