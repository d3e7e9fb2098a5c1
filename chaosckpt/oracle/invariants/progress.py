"""progress: after the faults have stopped, the job ends, and it never hangs where faults only delayed it."""

from __future__ import annotations

from chaosckpt.model.journal import Raised
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.failures import ended_before_recovery, root_error
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.recovery import recoveries
from chaosckpt.oracle.view import AttemptView, Track, TrialView
from chaosckpt.oracle.words import aftermath, ending, ranks, struck_path


def _judge(view: TrialView) -> list[Violation] | NotJudged:
    hung = [_hang(view, attempt) for attempt in view.attempts if _stood_still(attempt)]
    ended = _closing(view)
    return [*hung, *([] if isinstance(ended, NotJudged) else ended)] if hung else ended


def _stood_still(attempt: AttemptView) -> bool:
    """True for a confirmed hang while it trained or saved, in an attempt before the last one that no fault harmed."""
    return (
        not attempt.closing
        and attempt.end is not None
        and attempt.end.event.outcome == "hung"
        and attempt.hang_confirmed
        and attempt.unharmed
        and not attempt.hung_in_recovery
        and not ended_before_recovery(attempt)
    )


def _hang(view: TrialView, attempt: AttemptView) -> Violation:
    assert attempt.end is not None
    index = attempt.end.index
    cleared = [track.rank for track in attempt.tracks if track.exit is None or track.exit.event.by != "self"]
    who = ranks(cleared or [track.rank for track in attempt.tracks])
    return Violation(
        invariant=progress.name,
        sentence=(
            f"Attempt {attempt.number}, in which faults delayed operations and harmed nothing, never ended: {who} hung, "
            f"alone at three times the deadline, too.{aftermath(view, index, attempt.number)}"
        ),
        attempt=attempt.number,
        rank=min(cleared, default=0),
        path=struck_path(view, index, attempt.number),
        expected=f"every rank finishes at step {view.start.total_steps}",
        seen=f"{who} hung",
        error_type="hang",
        evidence=(attempt.start.index, index),
    )


def _closing(view: TrialView) -> list[Violation] | NotJudged:
    closing = view.closing
    if closing is None or closing.end is None:
        return NotJudged("the trial had no closing attempt that ended")
    if ended_before_recovery(closing):
        return NotJudged("the closing attempt ended before any rank began to recover")
    excused = _failed_to_recover(view, closing)
    if excused is not None:
        return excused
    behind = [track for track in closing.tracks if not _done(view, track)]
    if closing.end.event.outcome == "hung":
        if closing.hung_in_recovery or not closing.hang_confirmed:
            return NotJudged("the closing attempt hung in recovery, or its hang was not confirmed")
        stuck = behind or list(closing.tracks)
        return [_violation(view, closing, stuck[0], f"{ranks(t.rank for t in stuck)} hung", "hang", closing.end.index)]
    return [_unfinished(view, closing, behind)] if behind else []


def _failed_to_recover(view: TrialView, closing: AttemptView) -> NotJudged | None:
    """Why a failed recovery of the closing attempt is judged elsewhere; None where the job should have gone on."""
    recovery = next((r for r in recoveries(view) if r.attempt.number == closing.number), None)
    if recovery is None or not recovery.failed:
        return None
    if recovery.owed.required is not None:
        return NotJudged("the closing attempt failed to recover, which newest-complete judges")
    if view.damaged(closing.recovery_ends):
        return NotJudged("files were damaged, so that the closing attempt was entitled to refuse, on any rank")
    if closing.resumes and not recovery.attempt.recovered:
        return NotJudged("the closing attempt was entitled to refuse, and how it did is judged by clear-failure")
    return None


def _done(view: TrialView, track: Track) -> bool:
    return track.finished is not None and track.finished.event.step == view.start.total_steps


def _unfinished(view: TrialView, closing: AttemptView, behind: list[Track]) -> Violation:
    errors = closing.all(Raised)
    root = root_error([at.event for at in errors])
    if root is not None:
        index = next(at.index for at in errors if at.event is root)
        step = "" if root.step is None else f" at step {root.step}"
        lines = [line.strip() for line in root.message.splitlines() if line.strip()]
        seen = f"{root.error_type} in {root.where}{step}: {lines[-1][:200] if lines else 'no message'}"
        return _violation(view, closing, closing.tracks[root.rank], seen, root.error_type, index, root.step)
    track = behind[0]
    if track.finished is not None:
        seen = f"it finished at step {track.finished.event.step} of {view.start.total_steps}"
        return _violation(view, closing, track, seen, "wrong-end", track.finished.index)
    index = track.exit.index if track.exit is not None else closing.end.index if closing.end else closing.start.index
    seen = ending(track.exit.event) if track.exit is not None else "it never finished"
    return _violation(view, closing, track, f"{seen}, without finishing", "silent-exit", index)


def _violation(
    view: TrialView, closing: AttemptView, track: Track, seen: str, slug: str, index: int, step: int | None = None
) -> Violation:
    return Violation(
        invariant=progress.name,
        sentence=(
            f"The closing attempt {closing.number}, into which no fault was injected, did not end as it should: "
            f"rank {track.rank}: {seen}.{aftermath(view, index, closing.number)}"
        ),
        attempt=closing.number,
        rank=track.rank,
        step=step,
        path=struck_path(view, index, closing.number),
        expected=f"every rank finishes at step {view.start.total_steps}",
        seen=seen,
        error_type=slug,
        evidence=(closing.start.index, index),
    )


progress = Invariant(
    name="progress",
    holds=(
        "after the faults have stopped, the job ends: remains of a crash block neither recovery nor saves, and a job whose "
        "operations were only delayed doesn't hang"
    ),
    judge=_judge,
)
