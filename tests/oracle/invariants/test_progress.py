from __future__ import annotations

import pytest

from chaosckpt.model.scenario import CommandSettings
from chaosckpt.oracle import check
from tests.oracle.command_journals import SAVED, CommandJournal, killed_in_save_4
from tests.oracle.journals import SCENARIO, TargetJournal, interrupted, operation, violated


def _primary(trial: TargetJournal) -> tuple[str, str]:
    primary = check(SCENARIO, trial.journal()).primary
    assert primary is not None
    return primary.invariant, primary.error_type


@pytest.mark.parametrize("where", ["save", "train", "wait", "close"])
def test_exception_in_the_closing_attempt(where: str) -> None:
    """A leftover that makes the next save fail blocks the job; the error of its own is named, not the peer's."""
    trial = interrupted().recovers(2).starts_save(4)
    trial.raises(where, "RuntimeError", "Connection reset by peer", ranks=[0])
    trial.raises(where, "FileExistsError", "shared/step-000004 exists", ranks=[1]).ends("failed")
    assert _primary(trial) == ("progress", "FileExistsError")


def test_hang_in_training() -> None:
    """A closing attempt that hangs after recovery, confirmed, makes no progress."""
    trial = interrupted().recovers(2).starts_save(4).exits(by="harness").ends("hung", confirmed=True)
    assert _primary(trial) == ("progress", "hang")


def test_end_before_the_last_step() -> None:
    """An orderly end at the wrong step is no end of the job."""
    assert _primary(interrupted().recovers(2).finishes(4).ends("finished")) == ("progress", "wrong-end")


def test_exit_without_a_word() -> None:
    """A rank that just ends has not finished."""
    assert _primary(interrupted().recovers(2).exits(0).ends("finished")) == ("progress", "silent-exit")


def test_remains_of_a_first_save_that_block_the_start() -> None:
    """Before anything was acknowledged a job may start anew, so an exception on remains blocks it."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).starts_save(2).cut().attempt(closing=True)
    trial.begins_recovery().raises("recover", "EOFError", "Ran out of input").ends("failed")
    assert _primary(trial) == ("progress", "EOFError")


def test_failures_of_earlier_attempts_are_not_judged() -> None:
    """Only the closing attempt has to end: an attempt whose save was struck may fail."""
    trial = TargetJournal(faults=[["errno"]]).attempt().recovers(None).saves(2).starts_save(4).injects()
    trial.raises("save", "OSError", "Input/output error").ends("failed")
    verdict = check(SCENARIO, trial.attempt(closing=True).recovers(2).ends_well().journal())
    assert verdict.outcome == "pass", verdict


@pytest.mark.parametrize(
    ("kind", "confirmed", "outcome"),
    [
        ("latency", True, "violation"),
        ("latency", False, "inconclusive"),
        ("sigstop", True, "pass"),
        ("errno", True, "pass"),
    ],
)
def test_hang_of_a_job_that_was_only_delayed(kind: str, confirmed: bool, outcome: str) -> None:
    """A slow operation is no reason to hang for ever; a stopped rank or an injected error may be."""
    trial = TargetJournal(faults=[[kind]]).attempt().recovers(None).saves(2).starts_save(4)
    if kind == "errno":
        trial.injects("EIO", operation(), "persist of save 4")
    else:
        trial.fault(kind, at=operation(), label="persist of save 4")
    trial.exits(by="harness").ends("hung", confirmed=confirmed)
    verdict = check(SCENARIO, trial.attempt(closing=True).recovers(2).ends_well().journal())
    assert verdict.outcome == outcome, verdict
    if verdict.primary is not None:
        assert (verdict.primary.invariant, verdict.primary.error_type) == ("progress", "hang")
        assert "Attempt 0, in which faults only delayed operations" in verdict.primary.sentence


def test_remains_block_the_next_save():
    """C5: it resumes rightly, and fails when it saves the step again whose remains are there."""
    tail = "FileExistsError: [Errno 17] File exists: '/o/out/checkpoint-4'"
    assert violated(killed_in_save_4().attempt(closing=True).says_resumed(2).fails(tail)) == (
        "progress",
        "FileExistsError",
    )


def test_hangs():
    """A hang before it resumed is no clear failure; one later is a lack of progress; one that isn't confirmed is neither."""
    assert violated(killed_in_save_4().attempt(closing=True).hangs()) == ("clear-failure", "hang")
    assert violated(killed_in_save_4().attempt(closing=True).says_resumed(2).hangs()) == ("progress", "hang")
    verdict = killed_in_save_4().attempt(closing=True).hangs(confirmed=False).verdict()
    assert verdict.outcome == "inconclusive"


def test_told_to_resume_from_nothing():
    """With --resume-args a clear failure is right where nothing complete is there."""
    command = CommandSettings(argv=("python", "t.py", "{out}"), resume_argv=("--resume",))
    trial = CommandJournal(SAVED, command=command).attempt().tears(2).cut(label="persist of save 2")
    trial.attempt(closing=True).fails("ValueError: no valid checkpoint found in /o/out")
    assert trial.verdict().outcome == "pass"
