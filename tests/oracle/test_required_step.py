"""What a command is required to find: scripts that do right, in trials with faults, break nothing."""

from __future__ import annotations

import pytest

from tests.oracle.command_journals import SAVED, UNSAID, CommandJournal, killed_in_save_4
from tests.oracle.journals import operation, passes


@pytest.mark.parametrize("judged", [SAVED, UNSAID])
def test_resuming_from_the_newest_complete(judged):
    """Killed in a save, it resumes from the one before and ends with the same result."""
    passes(killed_in_save_4(judged=judged).attempt(closing=True).says_resumed(2).saves(4, 6).finishes())


@pytest.mark.parametrize("judged", [SAVED, UNSAID])
def test_a_newer_complete_one_is_permitted(judged):
    """Killed behind the last write of a save, it may resume from it or from the one before."""
    for step in (2, 4):
        trial = CommandJournal(judged).attempt().saves(2).saves(4, said=False).cut()
        passes(trial.attempt(closing=True).says_resumed(step).saves(4, 6).finishes())


def test_a_pointer_that_lags():
    """A script that follows a pointer file isn't held to files that lie there complete, also when two launches died since."""
    trial = CommandJournal(UNSAID, faults=[["cut"], ["cut"]]).attempt().saves(2).saves(4, said=False).cut()
    trial.attempt().says_resumed(2).cut(label="load of the recovery")
    passes(trial.attempt(closing=True).says_resumed(2).saves(4, 6).finishes())


def test_what_an_abandoned_branch_left_is_not_required():
    """After a launch rightly resumed from an older step, its own saves count, and not the newer ones of the life before."""
    trial = (
        CommandJournal(SAVED, faults=[["stale"], ["cut"]])
        .attempt()
        .saves(2, 4)
        .saves(6, said=False)
        .cut(label="persist of save 6")
    )
    trial.attempt().says_resumed(2).fault(
        "not-visible", at=operation(path="out:.", op="list"), label="discover of the recovery"
    )
    trial.saves(4).cut(label="persist of save 6")
    passes(trial.attempt(closing=True).says_resumed(4).saves(6).finishes())


def test_a_script_without_resume():
    """A fresh start is never a violation where golden runs did not show that it resumes, whatever it overwrites."""
    judged = ("checkpoints", "saved", "result", "exact")
    trial = CommandJournal(judged, faults=[["cut"], ["cut"]]).attempt().saves(2).tears(4).cut()
    trial.attempt().removes(4).tears(2).cut(label="persist of save 2")
    verdict = trial.attempt(closing=True).saves(2, 4, 6).finishes().verdict()
    assert verdict.outcome == "pass", verdict
    assert any("--resume-args" in reason for reason in verdict.unjudged)


def test_a_script_whose_numbers_are_others():
    """Where it says another number than its files bear, steps are not compared."""
    verdict = (
        killed_in_save_4(judged=("checkpoints", "resumed", "result", "exact"))
        .attempt(closing=True)
        .says_resumed(1)
        .saves(4, 6)
        .finishes()
        .verdict()
    )
    assert verdict.outcome == "pass"
    assert "newest-complete" not in verdict.judged


def test_a_job_that_was_over_may_say_nothing():
    """Killed after its last save, a script that then only sees that all is done has not begun anew."""
    for judged in (SAVED, UNSAID):
        trial = CommandJournal(judged).attempt().saves(2, 4, 6).cut(label="persist of save 6")
        passes(trial.attempt(closing=True).finishes(operations=4))


def test_a_relaunch_after_the_end():
    """A launch after one that came to its end without a fault may do what it likes."""
    trial = CommandJournal(SAVED, faults=[[], ["cut"]]).attempt().saves(2, 4, 6).finishes()
    passes(trial.attempt().cut(label="discover of the recovery").attempt(closing=True).saves(2, 4, 6).finishes())


def test_keeping_the_best_instead_of_the_newest():
    """A script that removes the newest of its own choice is not held to it."""
    trial = CommandJournal(SAVED).attempt().saves(2, 4).removes(4).tears(6).cut(label="persist of save 6")
    passes(trial.attempt(closing=True).says_resumed(2).saves(4).removes(4).saves(6).removes(6).finishes())


def test_faults_in_the_recovery_excuse_it():
    """What a launch does in whose recovery a fault struck is not judged; neither is a later launch held to what it left behind."""
    trial = (
        CommandJournal(SAVED, faults=[["cut"], ["errno"]]).attempt().saves(2, 4).tears(6).cut(label="persist of save 6")
    )
    trial.attempt().injects("EIO", operation(path="out:ckpt-4.pt", op="read"), "load of the recovery").fails(
        "OSError: [Errno 5]"
    )
    passes(trial.attempt(closing=True).says_resumed(4).saves(6).finishes())


def test_ranks_that_a_launcher_starts_again():
    """Several lines in one launch that a fault struck don't tell which start of its ranks they are about."""
    trial = CommandJournal(SAVED, faults=[["cut"], ["sigkill"]]).attempt().saves(2).tears(4).cut()
    trial.attempt().says_resumed(2, 4).saves(4).fault(
        "sigkill", at=CommandJournal.struck, label="persist of save 6"
    ).finishes()
    passes(trial.attempt(closing=True).says_resumed(4).saves(6).finishes())
