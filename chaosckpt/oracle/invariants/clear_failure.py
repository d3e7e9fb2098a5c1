"""clear-failure: a recovery that can't succeed says so: by an exit code, in time, and naming what it looked for."""

from __future__ import annotations

from collections.abc import Iterator

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts import command_storage as storage
from chaosckpt.oracle.facts.command import CommandAttempt, CommandView
from chaosckpt.oracle.facts.failures import (
    excuse,
    failure,
    lost_its_peer,
    message,
    names_a_checkpoint,
    names_its_subject,
    printed_error,
)
from chaosckpt.oracle.facts.recovery import Recovery, recoveries
from chaosckpt.oracle.facts.requirement import required_step
from chaosckpt.oracle.facts.view import TargetView, Track
from chaosckpt.oracle.invariant import Invariant, NotJudged, lacking
from chaosckpt.oracle.phrasing import ranks

NAME = "clear-failure"


def _of_target(view: TargetView) -> list[Violation] | NotJudged:
    found, judged = [], 0
    for recovery in recoveries(view):
        hung = recovery.attempt.hung_in_recovery
        if hung:
            # An unconfirmed hang may have been a slow machine: check() makes the trial inconclusive.
            judged += recovery.attempt.hang_confirmed
            found += [_recovery_hung(view, recovery, hung)] if recovery.attempt.hang_confirmed else []
        if recovery.attempt.resumes and recovery.requirement.required is None:
            judged += bool(recovery.empty or recovery.failed)
            found += _silent_starts(view, recovery)
            found += _unclear_failures(view, recovery)
    return found if judged else NotJudged("no recovery hung, and no recovery failed that was allowed to fail")


def _recovery_hung(view: TargetView, recovery: Recovery, hung: tuple[Track, ...]) -> Violation:
    attempt = recovery.attempt
    assert attempt.end is not None
    who = ranks(track.rank for track in hung)
    return view.violation(
        NAME,
        f"{view.after_restart(attempt.number)}, recovery hung: {who} neither finished recovery nor failed before the deadline, "
        f"and a run of the trial alone with three times the deadline hung as well.",
        attempt=attempt.number,
        rank=hung[0].rank,
        error_type="hang",
        evidence=(attempt.end.index,),
        expected="a loaded checkpoint or an error before the deadline",
        seen=f"{who} hung in recovery",
    )


def _silent_starts(view: TargetView, recovery: Recovery) -> Iterator[Violation]:
    if view.start.fresh_start == "allowed":
        return
    for answer in recovery.empty:
        seen = "started at step 0 without an error"
        yield _unsaid(view, recovery, answer.event.rank, "silent-start", seen, answer.index)


def _unclear_failures(view: TargetView, recovery: Recovery) -> Iterator[Violation]:
    # A peer's error is excused only where some rank of the attempt did say what was looked for.
    said = any(names_its_subject(message(track)) for track in recovery.failed)
    # Damage that a target doesn't claim to notice may make any of its libraries complain, in any words.
    damaged = "integrity" not in view.start.guarantees and bool(view.damaged(recovery.attempt.recovery_ends))
    for track in recovery.failed:
        ended = track.recovery_error or track.exit
        assert ended is not None
        if track.exit is not None and track.exit.event.exit_code == 0:
            yield _unsaid(view, recovery, track.rank, "exit-0", "exited with code 0", track.exit.index)
        elif recovery.attempt.recovery_struck or damaged:
            # What an injected error makes a recovery say need not name the checkpoint.
            continue
        elif not names_its_subject(message(track)) and not (said and lost_its_peer(track)):
            error = track.recovery_error.event.error_type if track.recovery_error is not None else "silent-exit"
            seen = f"failed with an error that names no checkpoint and no file ({failure(track)})"
            yield _unsaid(view, recovery, track.rank, error, seen, ended.index)


def _unsaid(view: TargetView, recovery: Recovery, rank: int, slug: str, seen: str, index: int) -> Violation:
    attempt = recovery.attempt
    left = "was sure to be" if recovery.requirement.permitted else "could be"
    return view.violation(
        NAME,
        f"{view.after_restart(attempt.number)}, when no checkpoint {left} left to resume from, rank {rank} {seen}.",
        attempt=attempt.number,
        rank=rank,
        error_type=slug,
        evidence=(attempt.start.index, index),
        expected="a non-zero exit code and an error that names the missing checkpoint",
        seen=seen,
    )


def _of_command(view: CommandView) -> list[Violation] | NotJudged:
    """A command that can't resume says so, in time and with a status other than 0, naming the checkpoint."""
    missing = lacking(view, "checkpoints", "resumes")
    if missing is not None:
        return missing
    found: list[Violation] = []
    judged = 0
    for attempt in view.recoveries:
        if attempt.resumed or attempt.disturbed or not storage.before(view, attempt).any:
            continue
        if attempt.outcome == "hung" and attempt.end is not None and attempt.end.event.confirmed:
            judged += 1
            found.append(_command_hung(view, attempt, attempt.end.index))
        elif attempt.failed and required_step(view, attempt) is None and excuse(view, attempt) is None:
            judged += 1
            if attempt.exit is not None and not names_a_checkpoint(attempt):
                found.append(_names_no_checkpoint(view, attempt, attempt.exit.index))
    return found if judged else NotJudged("no attempt failed to resume without a fault in it")


def _command_hung(view: CommandView, attempt: CommandAttempt, index: int) -> Violation:
    return view.violation(
        NAME,
        f"{view.after_restart(attempt.number)}, the command hung before it resumed.",
        attempt=attempt.number,
        error_type="hang",
        evidence=(index,),
        expected="the command resumes, or fails before the deadline",
        seen="a hang",
    )


def _names_no_checkpoint(view: CommandView, attempt: CommandAttempt, index: int) -> Violation:
    error = printed_error(attempt)
    return view.violation(
        NAME,
        f"{view.after_restart(attempt.number)}, no complete checkpoint was left and the command ended {attempt.ending}, but its error "
        f"names no checkpoint: {error.line}.",
        attempt=attempt.number,
        rank=error.rank,
        error_type=error.kind or "unclear-error",
        evidence=(index,),
        expected="an error that names the checkpoint",
        seen=error.line,
    )


clear_failure = Invariant(
    name=NAME,
    holds=(
        "without a checkpoint to resume from, every rank exits before the deadline with a non-zero code and an error that names "
        "what is missing: no hang, no exit code 0, no silent start at step 0"
    ),
    of_target=_of_target,
    of_command=_of_command,
)
