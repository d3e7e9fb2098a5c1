"""rank-agreement: every rank resumed the same step and the same generation, or all of them nothing."""

from __future__ import annotations

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.recovery import Recovery, recoveries
from chaosckpt.oracle.view import TrialView
from chaosckpt.oracle.words import aftermath, struck_path


def _judge(view: TrialView) -> list[Violation] | NotJudged:
    judged = [recovery for recovery in recoveries(view) if len(recovery.loaded) + len(recovery.empty) > 1]
    if not judged:
        return NotJudged("no recovery returned on more than one rank")
    return [violation for recovery in judged for violation in _disagreement(view, recovery)]


def _disagreement(view: TrialView, recovery: Recovery) -> list[Violation]:
    answers = recovery.attempt.recovered
    said = {at.event.rank: "Nothing" if at.event.chosen is None else f"step {at.event.chosen}" for at in answers}
    if len(set(said.values())) > 1:
        return [_violation(view, recovery, said, "different-steps")]
    shown = {at.event.rank: recovery.shown(at.event.rank) for at in recovery.loaded}
    known = {rank: {save.key for save in saves} for rank, saves in shown.items() if saves}
    if len(known) > 1 and not set.intersection(*known.values()):
        generations = {rank: str(shown[rank][0]) for rank in known}
        return [_violation(view, recovery, generations, "different-generations")]
    return []


def _violation(view: TrialView, recovery: Recovery, held: dict[int, str], slug: str) -> Violation:
    seen = ", ".join(f"rank {rank} has {what}" for rank, what in sorted(held.items()))
    first = held[min(held)]
    odd = next(rank for rank in sorted(held) if held[rank] != first)
    answers = recovery.attempt.recovered
    last = max(at.index for at in answers)
    return Violation(
        invariant=rank_agreement.name,
        sentence=(
            f"In attempt {recovery.attempt.number} the ranks resumed from different checkpoints: {seen}."
            f"{aftermath(view, last, recovery.attempt.number)}"
        ),
        attempt=recovery.attempt.number,
        rank=odd,
        step=recovery.answer(odd).event.chosen,
        path=struck_path(view, last, recovery.attempt.number),
        expected="one step and one generation on every rank",
        seen=seen,
        error_type=slug,
        evidence=tuple(sorted(at.index for at in answers)),
    )


rank_agreement = Invariant(
    name="rank-agreement",
    holds="every rank resumes from the same step and generation, or every rank from nothing",
    judge=_judge,
)
