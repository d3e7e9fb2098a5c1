"""progress: after the faults have stopped, the job ends, and it never hangs where faults only delayed it."""

from __future__ import annotations

from chaosckpt.model.journal import Raised
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts import command_storage as storage
from chaosckpt.oracle.facts.command import CommandAttempt, CommandView
from chaosckpt.oracle.facts.failures import ended_before_recovery, excuse, printed_error, root_error
from chaosckpt.oracle.facts.recovery import recoveries
from chaosckpt.oracle.facts.view import TargetAttempt, TargetView, Track
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.phrasing import ending, ranks

NAME = "progress"


def _of_target(view: TargetView) -> list[Violation] | NotJudged:
    """Every rank of the closing attempt trains to the last step and exits with 0."""
    hung = [_hang(view, attempt) for attempt in view.attempts if _stood_still(attempt)]
    ended = _closing(view)
    return [*hung, *([] if isinstance(ended, NotJudged) else ended)] if hung else ended


def _stood_still(attempt: TargetAttempt) -> bool:
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


def _hang(view: TargetView, attempt: TargetAttempt) -> Violation:
    assert attempt.end is not None
    index = attempt.end.index
    cleared = [track.rank for track in attempt.tracks if track.exit is None or track.exit.event.by != "self"]
    who = ranks(cleared or [track.rank for track in attempt.tracks])
    return view.violation(
        NAME,
        f"Attempt {attempt.number}, in which faults only delayed operations, never ended: {who} hung, and a run of the trial alone "
        f"with three times the deadline hung as well.",
        attempt=attempt.number,
        rank=min(cleared, default=0),
        error_type="hang",
        evidence=(attempt.start.index, index),
        expected=f"every rank finishes at step {view.start.total_steps}",
        seen=f"{who} hung",
    )


def _closing(view: TargetView) -> list[Violation] | NotJudged:
    closing = view.closing
    if closing is None or closing.end is None:
        return NotJudged("the trial has no closing attempt that ended")
    if ended_before_recovery(closing):
        return NotJudged("the closing attempt ended before any rank started recovery")
    excused = _failed_to_recover(view, closing)
    if excused is not None:
        return excused
    behind = [track for track in closing.tracks if not _done(view, track)]
    if closing.end.event.outcome == "hung":
        if closing.hung_in_recovery or not closing.hang_confirmed:
            return NotJudged(
                "the closing attempt hung in recovery, which clear-failure judges, or its hang was not confirmed"
            )
        stuck = behind or list(closing.tracks)
        return [_not_ended(view, closing, stuck[0], f"{ranks(t.rank for t in stuck)} hung", "hang", closing.end.index)]
    return [_unfinished(view, closing, behind)] if behind else []


def _failed_to_recover(view: TargetView, closing: TargetAttempt) -> NotJudged | None:
    """Why a failed recovery of the closing attempt is judged elsewhere; None where the job should have gone on."""
    recovery = next((r for r in recoveries(view) if r.attempt.number == closing.number), None)
    if recovery is None or not recovery.failed:
        return None
    if recovery.requirement.required is not None:
        return NotJudged("the closing attempt could not load a checkpoint, which newest-complete judges")
    if view.damaged(closing.recovery_ends):
        return NotJudged("a fault damaged files, so every rank of the closing attempt was allowed to fail")
    if closing.resumes and not recovery.attempt.recovered:
        return NotJudged("the closing attempt was allowed to fail, and clear-failure judges its error")
    return None


def _done(view: TargetView, track: Track) -> bool:
    return track.finished is not None and track.finished.event.step == view.start.total_steps


def _unfinished(view: TargetView, closing: TargetAttempt, behind: list[Track]) -> Violation:
    errors = closing.all(Raised)
    root = root_error([at.event for at in errors])
    if root is not None:
        index = next(at.index for at in errors if at.event is root)
        step = "" if root.step is None else f" at step {root.step}"
        lines = [line.strip() for line in root.message.splitlines() if line.strip()]
        seen = f"{root.error_type} in {root.where}{step}: {lines[-1][:200] if lines else 'no message'}"
        return _not_ended(view, closing, closing.tracks[root.rank], seen, root.error_type, index, root.step)
    track = behind[0]
    if track.finished is not None:
        seen = f"finished at step {track.finished.event.step} of {view.start.total_steps}"
        return _not_ended(view, closing, track, seen, "wrong-end", track.finished.index)
    index = track.exit.index if track.exit is not None else closing.end.index if closing.end else closing.start.index
    seen = ending(track.exit.event) if track.exit is not None else "never ended"
    return _not_ended(view, closing, track, f"{seen} before the last step", "silent-exit", index)


def _not_ended(
    view: TargetView, closing: TargetAttempt, track: Track, seen: str, slug: str, index: int, step: int | None = None
) -> Violation:
    return view.violation(
        NAME,
        f"Attempt {closing.number} did not finish, although no fault was injected into it: rank {track.rank}: {seen}.",
        attempt=closing.number,
        rank=track.rank,
        step=step,
        error_type=slug,
        evidence=(closing.start.index, index),
        expected=f"every rank finishes at step {view.start.total_steps}",
        seen=seen,
    )


def _of_command(view: CommandView) -> list[Violation] | NotJudged:
    """The closing attempt's own process exits with 0."""
    closing = view.closing
    if closing is None or closing.end is None:
        return NotJudged("the trial has no closing attempt that ended")
    if closing.outcome == "finished":
        return []
    if closing.outcome == "hung" and not closing.end.event.confirmed:
        return NotJudged("the closing attempt hung, but the hang was not confirmed")
    excused = excuse(view, closing)
    if excused is not None:
        return NotJudged(f"the closing attempt failed, but {excused}")
    if _was_right_to_fail(view, closing):
        return NotJudged("the closing attempt had to resume, but no complete checkpoint was left")
    return [_stuck(view, closing)]


def _was_right_to_fail(view: CommandView, closing: CommandAttempt) -> bool:
    """Whether it was told to resume, by `--resume-args`, though there was nothing that it could have resumed from."""
    told = bool(view.command.resume_argv) and closing.start.event.intent == "resume"
    return told and closing.outcome == "failed" and not closing.resumed and not storage.before(view, closing).whole


def _stuck(view: CommandView, closing: CommandAttempt) -> Violation:
    rank = None
    if closing.outcome == "hung":
        slug, how = "hang", "hung"
    else:
        kind, line, rank = printed_error(closing)
        slug, how = kind or "failed", f"ended {closing.ending} ({line})"
    lying = storage.before(view, closing)
    there = f" Step {max(lying.whole)} was complete on storage." if lying.whole else ""
    assert closing.end is not None
    return view.violation(
        NAME,
        f"Attempt {closing.number} did not finish, although no fault was injected into it: the command {how}.{there}",
        attempt=closing.number,
        rank=rank,
        error_type=slug,
        evidence=(closing.exit.index if closing.exit is not None else closing.end.index,),
        expected="exit status 0",
        seen=how,
    )


progress = Invariant(
    name=NAME,
    holds=(
        "without further faults the job finishes: leftovers of a crash block neither recovery nor saves, and a job whose "
        "operations were only delayed doesn't hang"
    ),
    of_target=_of_target,
    of_command=_of_command,
)
