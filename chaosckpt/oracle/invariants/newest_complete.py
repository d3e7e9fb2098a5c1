"""newest-complete: recovery chooses the newest checkpoint that was safely saved, or a newer complete one."""

from __future__ import annotations

from collections.abc import Iterator

from chaosckpt.model.journal import Recovered
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts.command import CommandAttempt, CommandView
from chaosckpt.oracle.facts.failures import excuse, failure, printed_error, root
from chaosckpt.oracle.facts.recovery import Recovery, recoveries
from chaosckpt.oracle.facts.requirement import RequiredStep, required_step
from chaosckpt.oracle.facts.saves import Save
from chaosckpt.oracle.facts.view import At, TargetView
from chaosckpt.oracle.invariant import Invariant, NotJudged, lacking
from chaosckpt.oracle.phrasing import tiers

NAME = "newest-complete"


def _of_target(view: TargetView) -> list[Violation] | NotJudged:
    """By what was acknowledged before the recovery, and has survived since."""
    judged = [recovery for recovery in recoveries(view) if recovery.requirement.required is not None]
    if not judged:
        return NotJudged("no recovery was required to find a checkpoint")
    return [violation for recovery in judged for violation in _shortfalls(view, recovery)]


def _shortfalls(view: TargetView, recovery: Recovery) -> Iterator[Violation]:
    required = recovery.requirement.required
    assert required is not None
    for answer in recovery.loaded:
        older = _older(recovery, answer, required)
        if older is not None:
            yield _shortfall(view, recovery, required, answer.event.rank, older, "older-checkpoint", answer.index)
    for answer in recovery.empty:
        yield _shortfall(view, recovery, required, answer.event.rank, "no checkpoint", "nothing-chosen", answer.index)
    # A fault that landed during this recovery may be why it failed, so that its failure says nothing.
    if not recovery.attempt.recovery_struck:
        failed = root(recovery.failed)
        if failed is not None:
            ended = failed.recovery_error or failed.exit
            assert ended is not None
            kind = failed.recovery_error.event.error_type if failed.recovery_error else "silent-exit"
            yield _shortfall(view, recovery, required, failed.rank, failure(failed), kind, ended.index)


def _older(recovery: Recovery, answer: At[Recovered], required: Save) -> str | None:
    """What a rank resumed from, when that is older than the required checkpoint."""
    shown = recovery.shown(answer.event.rank)
    if shown:
        # The same bytes saved twice are the same checkpoint: the newest of equals counts.
        newest = max(shown, key=lambda save: save.key)
        return None if newest.key >= required.key else str(newest)
    chosen = answer.event.chosen
    return f"step {chosen}" if chosen is not None and chosen < required.step else None


def _shortfall(
    view: TargetView, recovery: Recovery, required: Save, rank: int, seen: str, slug: str, index: int
) -> Violation:
    where = f"{view.after_restart(recovery.attempt.number)}, rank {rank}"
    what = {
        "older-checkpoint": f"{where} resumed from {seen}, an older checkpoint,",
        "nothing-chosen": f"{where} found no checkpoint and started at step 0,",
    }.get(slug, f"{where} could not load a checkpoint ({seen}),")
    return view.violation(
        NAME,
        f"{what} although every rank had acknowledged {required.briefly} as safe on {tiers(required.levels)} and no fault has "
        f"removed it since.",
        attempt=recovery.attempt.number,
        rank=rank,
        step=required.step,
        error_type=slug,
        evidence=(*required.evidence, index),
        expected=f"{required}, or a newer complete checkpoint",
        seen=seen,
    )


def _of_command(view: CommandView) -> list[Violation] | NotJudged:
    """By what was said to be saved before the attempt, or was seen to be finished, and lay on storage."""
    missing = lacking(view, "checkpoints", "resumes")
    if missing is not None:
        return missing
    found: list[Violation] = []
    judged = 0
    for attempt in view.recoveries:
        required = required_step(view, attempt)
        if required is not None and excuse(view, attempt) is None:
            judged += 1
            found += _missed(view, attempt, required)
    return found if judged else NotJudged("no attempt was required to find a checkpoint")


def _missed(view: CommandView, attempt: CommandAttempt, required: RequiredStep) -> Iterator[Violation]:
    where = f"{view.after_restart(attempt.number)}, the command"
    steps = [at.event.step for at in attempt.resumed]
    known = [step for step in steps if step is not None]
    if known and len(known) == len(steps):
        if max(known) < required.step:
            slug = "older-checkpoint" if required.there else "not-what-was-said"
            seen = f"step {max(known)}"
            what = f"{where} resumed from {seen}, an older checkpoint,"
            yield _missed_step(view, attempt, required, what, slug, attempt.resumed[-1].index, seen)
    elif steps:
        return  # a line without a number
    elif attempt.failed and attempt.exit is not None:
        error = printed_error(attempt)
        what = f"{where} ended {attempt.ending} before it resumed ({error.line}),"
        slug = error.kind or "failed-to-resume"
        yield _missed_step(view, attempt, required, what, slug, attempt.exit.index, error.line, error.rank)
    elif _began_anew(view, attempt, required) and attempt.end is not None:
        what = f"{where} started from the beginning,"
        yield _missed_step(
            view, attempt, required, what, "nothing-chosen", attempt.end.index, "a start from the beginning"
        )


def _began_anew(view: CommandView, attempt: CommandAttempt, required: RequiredStep) -> bool:
    """Whether an attempt that came to its end in silence has trained from the beginning.

    A job that had reached its end before may say nothing and do nothing. One that begins anew saves early steps again, and so
    it performs about as many operations as the first attempt at least.
    """
    if attempt.outcome != "finished" or attempt.killed:
        return False
    if any(other.undisturbed for other in view.earlier(attempt)):
        return False
    if view.judges("saved"):
        return any(at.event.step is not None and at.event.step <= required.step for at in attempt.saved)
    first = view.attempts[0].operations
    return first > 0 and 2 * attempt.operations >= first


def _missed_step(
    view: CommandView,
    attempt: CommandAttempt,
    required: RequiredStep,
    what: str,
    slug: str,
    index: int,
    seen: str,
    rank: int | None = None,
) -> Violation:
    return view.violation(
        NAME,
        f"{what} although {required.why}.",
        attempt=attempt.number,
        rank=rank,
        step=required.step,
        error_type=slug,
        evidence=(*required.evidence, index),
        expected=f"step {required.step}, or a newer complete checkpoint",
        seen=seen,
    )


newest_complete = Invariant(
    name=NAME,
    holds="recovery loads the newest checkpoint that was acknowledged and that no fault removed, or a newer complete one",
    of_target=_of_target,
    of_command=_of_command,
)
