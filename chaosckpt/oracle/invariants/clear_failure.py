"""clear-failure: a recovery that can't succeed says so: by an exit code, in time, and naming what it looked for."""

from __future__ import annotations

from collections.abc import Iterator

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.failures import lost_its_peer, message, names_its_subject
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.recovery import Recovery, recoveries
from chaosckpt.oracle.view import Track, TrialView
from chaosckpt.oracle.words import aftermath, failure, ranks, struck_path


def _judge(view: TrialView) -> list[Violation] | NotJudged:
    found, subjects = [], 0
    for recovery in recoveries(view):
        hung = recovery.attempt.hung_in_recovery
        if hung:
            # An unconfirmed hang may have been a slow machine: check() makes the trial inconclusive.
            subjects += recovery.attempt.hang_confirmed
            found += [_hang(view, recovery, hung)] if recovery.attempt.hang_confirmed else []
        if recovery.attempt.resumes and recovery.owed.required is None:
            subjects += bool(recovery.empty or recovery.failed)
            found += _silent_starts(view, recovery)
            found += _unclear(view, recovery)
    return found if subjects else NotJudged("no recovery hung, or was entitled to fail and did")


def _hang(view: TrialView, recovery: Recovery, hung: tuple[Track, ...]) -> Violation:
    attempt = recovery.attempt
    assert attempt.end is not None
    who = ranks(track.rank for track in hung)
    return Violation(
        invariant=clear_failure.name,
        sentence=(
            f"The recovery of attempt {attempt.number} hung: {who} neither recovered nor failed before the deadline, "
            f"nor alone at three times the deadline.{aftermath(view, attempt.end.index, attempt.number)}"
        ),
        attempt=attempt.number,
        rank=hung[0].rank,
        path=struck_path(view, attempt.end.index, attempt.number),
        expected="a checkpoint recovered, or an error, in time",
        seen=f"{who} hung in recovery",
        error_type="hang",
        evidence=(attempt.end.index,),
    )


def _silent_starts(view: TrialView, recovery: Recovery) -> Iterator[Violation]:
    if view.start.fresh_start == "allowed":
        return
    for answer in recovery.empty:
        seen = "began at step 0 without an error"
        yield _unsaid(view, recovery, answer.event.rank, "silent-start", seen, answer.index)


def _unclear(view: TrialView, recovery: Recovery) -> Iterator[Violation]:
    # A peer's error is excused only where some rank of the attempt did say what was looked for.
    said = any(names_its_subject(message(track)) for track in recovery.failed)
    # Damage that a target doesn't claim to notice may make any of its libraries complain, in any words.
    damaged = "integrity" not in view.start.guarantees and bool(view.damaged(recovery.attempt.recovery_ends))
    for track in recovery.failed:
        ended = track.recovery_error or track.exit
        assert ended is not None
        if track.exit is not None and track.exit.event.exit_code == 0:
            yield _unsaid(view, recovery, track.rank, "exit-0", "ended with exit code 0", track.exit.index)
        elif recovery.attempt.recovery_struck or damaged:
            # What an injected error makes a recovery say need not name the checkpoint.
            continue
        elif not names_its_subject(message(track)) and not (said and lost_its_peer(track)):
            error = track.recovery_error.event.error_type if track.recovery_error is not None else "silent-exit"
            seen = f"failed without naming what it looked for ({failure(track)})"
            yield _unsaid(view, recovery, track.rank, error, seen, ended.index)


def _unsaid(view: TrialView, recovery: Recovery, rank: int, slug: str, seen: str, index: int) -> Violation:
    attempt = recovery.attempt
    left = "nothing was left that it was sure to find" if recovery.owed.permitted else "nothing could be left"
    return Violation(
        invariant=clear_failure.name,
        sentence=f"Rank {rank} of attempt {attempt.number}, resuming when {left}, {seen}.{aftermath(view, index, attempt.number)}",
        attempt=attempt.number,
        rank=rank,
        path=struck_path(view, index, attempt.number),
        expected="a non-zero exit with an error that names the checkpoint that was looked for",
        seen=seen,
        error_type=slug,
        evidence=(attempt.start.index, index),
    )


clear_failure = Invariant(
    name="clear-failure",
    holds=(
        "with nothing to resume from, every rank told to resume exits non-zero, in time, naming what it looked for: "
        "no hang, no exit 0, no silent step 0"
    ),
    judge=_judge,
)
