"""always-recoverable: from the first complete checkpoint on there is always something to recover."""

from __future__ import annotations

from chaosckpt.model.journal import FaultInjected, StorageDestroyed
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts import command_storage as storage
from chaosckpt.oracle.facts.command import CommandAttempt, CommandView
from chaosckpt.oracle.facts.failures import failure
from chaosckpt.oracle.facts.recovery import Recovery, recoveries
from chaosckpt.oracle.facts.view import TargetView
from chaosckpt.oracle.invariant import Invariant, NotJudged, lacking

NAME = "always-recoverable"


def _of_target(view: TargetView) -> list[Violation] | NotJudged:
    """From the first acknowledgement on recovery finds some checkpoint."""
    judged = [recovery for recovery in recoveries(view) if _has_to_find_one(view, recovery)]
    if not judged:
        return NotJudged("no recovery without faults, on storage without faults, was required to find a checkpoint")
    return [_nothing_found(view, recovery) for recovery in judged if found_nothing(recovery)]


def found_nothing(recovery: Recovery) -> bool:
    """True when no rank loaded anything, though each one's recovery came to an end by itself."""
    tracks = recovery.attempt.tracks
    return bool(tracks) and not recovery.loaded and len(recovery.empty) + len(recovery.failed) == len(tracks)


def _has_to_find_one(view: TargetView, recovery: Recovery) -> bool:
    """True for a recovery that is required to find a checkpoint, and that no fault struck, nor anything that it reads."""
    until = recovery.attempt.recovery_ends
    lost = any(at.index <= until for at in view.all(StorageDestroyed)) or bool(view.damaged(until))
    return recovery.requirement.required is not None and not recovery.attempt.recovery_struck and not lost


def _nothing_found(view: TargetView, recovery: Recovery) -> Violation:
    attempt, required = recovery.attempt, recovery.requirement.required
    assert required is not None
    answers = [f"rank {at.event.rank}: no checkpoint" for at in recovery.empty]
    answers += [f"rank {track.rank}: {failure(track)}" for track in recovery.failed]
    seen = "; ".join(sorted(answers))
    ends = [track.recovered or track.recovery_error or track.exit for track in attempt.tracks]
    index = max((end.index for end in ends if end is not None), default=attempt.start.index)
    return view.violation(
        NAME,
        f"{view.after_restart(attempt.number)}, no rank could load any checkpoint ({seen}), although every rank had acknowledged "
        f"{required.briefly} and no fault had removed or damaged any storage: the job had nothing to resume from.",
        attempt=attempt.number,
        step=required.step,
        error_type="nothing-left",
        evidence=(*required.evidence, index),
        expected=f"{required}, or another complete checkpoint",
        seen=seen,
    )


def _of_command(view: CommandView) -> list[Violation] | NotJudged:
    """Once there was a complete checkpoint, there always is one on storage."""
    missing = lacking(view, "checkpoints")
    if missing is not None:
        return missing
    found: list[Violation] = []
    judged = 0
    for attempt in view.attempts:
        once = _once(view, attempt)
        if once is None or attempt.after is None:
            continue
        judged += 1
        left = storage.after(view, attempt)
        if not left.whole and not left.unsure and not _has_a_spare(view, attempt):
            found.append(_nothing_left(view, attempt, *once))
    return (
        found if judged else NotJudged("no fault was injected into an attempt that had a complete checkpoint to keep")
    )


def _has_a_spare(view: CommandView, attempt: CommandAttempt) -> bool:
    """Whether a copy under another name was left that the command makes use of: the next attempt shows that, where it tells.

    Not every copy is one, such as the temporary file of a save that isn't over.
    """
    assert attempt.after is not None
    spare = attempt.after.event.spare
    later = next((other for other in view.attempts if other.number > attempt.number), None)
    if not spare or later is None or not view.judges("resumes") or later.struck_in_recovery:
        return bool(spare)
    told = {at.event.step for at in later.resumed}
    return bool(told & set(spare)) or (not told and bool(later.disturbed))


def _once(view: CommandView, attempt: CommandAttempt) -> tuple[int | None, str, tuple[int, ...]] | None:
    """(step, how it is known, as a clause, evidence) of a complete checkpoint that this attempt must not leave storage without.

    The step is None where a fault struck while an older checkpoint was removed, and it isn't known which was the newest.
    """
    if attempt.struck_in_recovery or view.damaged_before(attempt) or attempt.after is None:
        return None
    there = storage.before(view, attempt).whole
    if there and attempt.before is not None:
        # A command that began anew, because it never resumes or wasn't told to, may overwrite what it doesn't need.
        if attempt.chosen is None and not view.judges("resumes"):
            return None
        return max(there), f"step {max(there)} was complete before it", (attempt.before.index,)
    if attempt.struck_retention and not view.judges("saved"):
        struck = next(at for at in attempt.all(FaultInjected) if at.event.label.startswith("retire"))
        return None, "an older checkpoint was complete until the attempt removed it", (struck.index,)
    passed = _passed(view, attempt)
    if passed is not None and not view.judges("saved"):
        return (
            passed,
            f"step {passed} had been saved before the save that the fault interrupted",
            (attempt.start.index,),
        )
    told = [at for at in attempt.saved if at.event.step is not None] if view.judges("saved") else []
    if not told:
        return None
    newest = max(told, key=lambda at: (at.event.step or 0, at.index))
    step = newest.event.step or 0
    return step, f"the command had reported step {step} as saved", (newest.index,)


def _passed(view: CommandView, attempt: CommandAttempt) -> int | None:
    """A step that the first attempt had surely finished, by golden runs, before a fault struck a later save.

    Between the two lies another one, so that it isn't a save that still goes on in the background.
    """
    resized = any(at.event.operation is None for at in attempt.all(FaultInjected))
    if attempt is not view.attempts[0] or resized or not attempt.struck_saves:
        return None
    earlier = [step for step in view.start.saves if step < min(attempt.struck_saves)]
    return earlier[-2] if len(earlier) > 1 else None


def _nothing_left(
    view: CommandView, attempt: CommandAttempt, step: int | None, how: str, evidence: tuple[int, ...]
) -> Violation:
    assert attempt.after is not None
    which = "an older checkpoint" if step is None else f"step {step}"
    return view.violation(
        NAME,
        f"After attempt {attempt.number} no complete checkpoint was left, although {how}.",
        attempt=attempt.number,
        step=step,
        error_type="nothing-left",
        evidence=(*evidence, attempt.after.index),
        expected=f"{which}, or a newer checkpoint",
        seen="no complete checkpoint",
    )


always_recoverable = Invariant(
    name=NAME,
    holds="after the first acknowledgement, recovery finds a checkpoint whatever operation was the last one",
    of_target=_of_target,
    of_command=_of_command,
)
