"""newest-complete: recovery chose something permitted, at least the required checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from chaosckpt.model.journal import Recovered
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.failures import root
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.recovery import Recovery, recoveries
from chaosckpt.oracle.saves import Save
from chaosckpt.oracle.view import At, TrialView
from chaosckpt.oracle.words import aftermath, failure, struck_path


def _judge(view: TrialView) -> list[Violation] | NotJudged:
    judged = [recovery for recovery in recoveries(view) if recovery.owed.required is not None]
    if not judged:
        return NotJudged("no recovery had a checkpoint that it was required to find")
    return [violation for recovery in judged for violation in _shortfalls(view, recovery)]


def _shortfalls(view: TrialView, recovery: Recovery) -> Iterator[Violation]:
    required = recovery.owed.required
    assert required is not None
    for answer in recovery.loaded:
        older = _older(recovery, answer, required)
        if older is not None:
            yield _violation(view, recovery, required, answer.event.rank, older, "older-checkpoint", answer.index)
    for answer in recovery.empty:
        yield _violation(view, recovery, required, answer.event.rank, "Nothing", "nothing-chosen", answer.index)
    # A fault that landed during this recovery may be why it failed, so that its failure says nothing.
    if not recovery.attempt.recovery_struck:
        failed = root(recovery.failed)
        if failed is not None:
            ended = failed.recovery_error or failed.exit
            assert ended is not None
            kind = failed.recovery_error.event.error_type if failed.recovery_error else "silent-exit"
            yield _violation(view, recovery, required, failed.rank, failure(failed), kind, ended.index)


def _older(recovery: Recovery, answer: At[Recovered], required: Save) -> str | None:
    """What a rank resumed from, when that is older than the required checkpoint."""
    shown = recovery.shown(answer.event.rank)
    if shown:
        # The same bytes saved twice are the same checkpoint: the newest of equals counts.
        newest = max(shown, key=lambda save: save.key)
        return None if newest.key >= required.key else str(newest)
    chosen = answer.event.chosen
    return f"step {chosen}" if chosen is not None and chosen < required.step else None


def _violation(
    view: TrialView, recovery: Recovery, required: Save, rank: int, seen: str, slug: str, index: int
) -> Violation:
    where = f"In attempt {recovery.attempt.number} rank {rank}"
    what = {
        "older-checkpoint": f"{where} resumed from {seen}, which is older than",
        "nothing-chosen": f"{where} found nothing to resume from and began at step 0, in spite of",
    }.get(slug, f"{where} failed to recover ({seen}), in spite of")
    tiers = sorted({level for levels in required.acknowledged.values() for level in levels})
    return Violation(
        invariant=newest_complete.name,
        sentence=(
            f"{what} {required}, which every rank had been told was safe ({', '.join(tiers)}), and which nothing since "
            f"has taken away.{aftermath(view, index, recovery.attempt.number)}"
        ),
        attempt=recovery.attempt.number,
        rank=rank,
        step=required.step,
        path=struck_path(view, index, recovery.attempt.number),
        expected=f"{required}, or a newer complete one",
        seen=seen,
        error_type=slug,
        evidence=(*required.evidence, index),
    )


newest_complete = Invariant(
    name="newest-complete",
    holds="recovery chooses the newest checkpoint that was acknowledged and survives, or a newer complete one",
    judge=_judge,
)
