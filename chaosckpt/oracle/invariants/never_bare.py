"""never-bare: from the first acknowledgement on there is always something to recover."""

from __future__ import annotations

from chaosckpt.model.journal import StorageDestroyed
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.recovery import Recovery, recoveries
from chaosckpt.oracle.view import TrialView
from chaosckpt.oracle.words import aftermath, failure, struck_path


def _judge(view: TrialView) -> list[Violation] | NotJudged:
    judged = [recovery for recovery in recoveries(view) if _subject(view, recovery)]
    if not judged:
        return NotJudged("no undisturbed recovery had a checkpoint that it was required to find, on storage left alone")
    return [_violation(view, recovery) for recovery in judged if bare(recovery)]


def bare(recovery: Recovery) -> bool:
    """True when no rank loaded anything, though each one's recovery came to an end by itself."""
    tracks = recovery.attempt.tracks
    return bool(tracks) and not recovery.loaded and len(recovery.empty) + len(recovery.failed) == len(tracks)


def _subject(view: TrialView, recovery: Recovery) -> bool:
    """True for a recovery that owes a checkpoint, and that no fault struck, nor anything that it reads."""
    until = recovery.attempt.recovery_ends
    lost = any(at.index <= until for at in view.all(StorageDestroyed)) or bool(view.damaged(until))
    return recovery.owed.required is not None and not recovery.attempt.recovery_struck and not lost


def _violation(view: TrialView, recovery: Recovery) -> Violation:
    attempt, required = recovery.attempt, recovery.owed.required
    assert required is not None
    answers = [f"rank {at.event.rank}: Nothing" for at in recovery.empty]
    answers += [f"rank {track.rank}: {failure(track)}" for track in recovery.failed]
    seen = "; ".join(sorted(answers))
    ends = [track.recovered or track.recovery_error or track.exit for track in attempt.tracks]
    index = max((end.index for end in ends if end is not None), default=attempt.start.index)
    return Violation(
        invariant=never_bare.name,
        sentence=(
            f"In attempt {attempt.number} no rank found any checkpoint at all ({seen}), though {required} had been "
            f"acknowledged and no storage was lost or damaged: the job was left with nothing to resume from."
            f"{aftermath(view, index, attempt.number)}"
        ),
        attempt=attempt.number,
        step=required.step,
        path=struck_path(view, index, attempt.number),
        expected=f"{required}, or any other complete checkpoint",
        seen=seen,
        error_type="bare",
        evidence=(*required.evidence, index),
    )


never_bare = Invariant(
    name="never-bare",
    holds="from the first acknowledgement on recovery finds some checkpoint after every operation",
    judge=_judge,
)
