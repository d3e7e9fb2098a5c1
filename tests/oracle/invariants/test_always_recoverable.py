from __future__ import annotations

import pytest

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle import NotJudged, TargetView, check
from chaosckpt.oracle.facts.recovery import recoveries
from chaosckpt.oracle.invariants.always_recoverable import always_recoverable, found_nothing
from tests.oracle.command_journals import SAVED, UNSAID, CommandJournal
from tests.oracle.journals import SCENARIO, TargetJournal, all_violated, interrupted, operation, passes, violated


def _found(trial: TargetJournal) -> list[Violation] | NotJudged:
    return always_recoverable.judge(TargetView(SCENARIO, trial.journal()))


def test_nothing_on_any_rank() -> None:
    """Nothing at all, or a failure of every rank, breaks it; it stands beside newest-complete, which comes first."""
    failed = interrupted().begins_recovery().raises("recover", "CheckpointError", "nothing in shared/step-*")
    for trial in (interrupted().recovers(None).ends_well(), failed.ends("failed")):
        verdict = check(SCENARIO, trial.journal())
        assert verdict.primary is not None
        assert verdict.primary.invariant == "newest-complete"
        gaps = [violation for violation in verdict.others if violation.invariant == "always-recoverable"]
        assert [violation.error_type for violation in gaps] == ["nothing-left"]
        assert "every rank had acknowledged step 2 and no fault" in gaps[0].sentence


def test_older_or_partly_loaded_is_something() -> None:
    """Whoever loads anything has found something, be it too old; nor is a job of which one rank loads."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).saves(4).cut().attempt(closing=True)
    assert _found(trial.recovers(2).ends_well()) == []
    partly = interrupted().recovers(2, ranks=[0]).begins_recovery([1]).raises("recover", "OSError", "x", ranks=[1])
    assert _found(partly.exits(1, ranks=[0]).ends("failed")) == []


@pytest.mark.parametrize("harm", ["destroyed", "damaged", "struck", "never acknowledged"])
def test_not_judged_where_storage_or_recovery_was_struck(harm: str) -> None:
    """Loss, damage or a fault in the recovery itself may leave nothing; before the first acknowledgement there is nothing."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None)
    trial = trial.starts_save(2) if harm == "never acknowledged" else trial.saves(2)
    trial.cut()
    if harm == "destroyed":
        trial.destroys("local", 0, "local-storage-loss")
    if harm == "damaged":
        trial.mutates("shared:step-000002/rank-0.pt")
    trial.attempt(closing=True)
    if harm == "struck":
        trial.begins_recovery().injects("EIO", operation(op="read"))
    assert isinstance(_found(trial.raises("recover", "CheckpointError", "x").ends("failed")), NotJudged)


def test_planted_files_are_no_excuse() -> None:
    """What a fault only added to storage, or whose times it changed, leaves every checkpoint as it was."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).cut()
    trial.mutates("shared:step-000099", "a directory that an interrupted run left", damages=False)
    found = _found(trial.attempt(closing=True).recovers(None).ends_well())
    assert isinstance(found, list)
    assert len(found) == 1


def test_finding_nothing_is_told_of_one_recovery() -> None:
    """The function judges a single recovery: a hang or a killed rank is another thing."""
    trial = interrupted().begins_recovery().exits(by="harness").ends("hung")
    assert not found_nothing(recoveries(TargetView(SCENARIO, trial.journal()))[-1])
    assert found_nothing(recoveries(TargetView(SCENARIO, interrupted().recovers(None).journal()))[-1])


def test_removing_before_saving():
    """C12: the old one is removed first, and a kill in between leaves nothing."""
    trial = CommandJournal(SAVED, faults=[["cut"], ["cut"]]).attempt().saves(2).cut()
    trial.attempt().says_resumed(2).removes(2).tears(4).cut(label="persist of save 4")
    trial.attempt(closing=True).saves(2, 4, 6).finishes()
    assert violated(trial) == ("always-recoverable", "nothing-left")


def test_removing_before_saving_in_the_first_launch():
    """C12, seen by what the command itself had said."""
    trial = (
        CommandJournal(SAVED)
        .attempt()
        .saves(2)
        .removes(2)
        .cut(label="retire of save 4")
        .attempt(closing=True)
        .saves(2, 4, 6)
        .finishes()
    )
    assert "always-recoverable" in all_violated(trial)


def test_a_copy_that_nothing_makes_use_of():
    """C12, though a copy lies there under another name: the next launch begins anew, and so the copy is none that counts."""
    trial = CommandJournal(SAVED, faults=[["cut"]]).attempt().saves(2).removes(2)
    trial.spare = (2, 4)
    assert violated(trial.cut().attempt(closing=True).saves(2, 4, 6).finishes()) == (
        "always-recoverable",
        "nothing-left",
    )


def test_removing_before_saving_unsaid():
    """C12, in a script that says nothing: the fault struck while an older one was removed, and nothing complete is left."""
    for torn in (False, True):
        trial = CommandJournal(UNSAID).attempt().saves(2).removes(2)
        trial = (trial.tears(4) if torn else trial).cut(label="retire of save 2")
        assert violated(trial.attempt(closing=True).saves(2, 4, 6).finishes()) == ("always-recoverable", "nothing-left")


def test_nothing_is_left_behind_two_saves():
    """C12, unsaid, killed while the third save is written: golden runs tell that two were finished before."""
    trial = CommandJournal(UNSAID).attempt().saves(2, 4).removes(2, 4).tears(6).cut(label="persist of save 6")
    assert violated(trial.attempt(closing=True).saves(2, 4, 6).finishes()) == ("always-recoverable", "nothing-left")
    # The save before may still have been going on in the background, and so it is not asked for.
    trial = CommandJournal(UNSAID).attempt().tears(2).tears(4).cut(label="persist of save 4")
    assert violated(trial.attempt(closing=True).saves(2, 4, 6).finishes()) == ("", "")


@pytest.mark.parametrize("torn", [False, True])
def test_the_one_before_under_another_name(torn):
    """Killed between two renames, or in a file written in place, the checkpoint lies there as .bak only, and that is resumed from."""
    trial = CommandJournal(SAVED, faults=[["cut"]]).attempt().saves(2).removes(2)
    trial = trial.tears(8, "out:last.pt") if torn else trial
    trial.spare = (2,)
    passes(trial.cut().attempt(closing=True).says_resumed(2).saves(4, 6).finishes())


def test_rotation():
    """Removing older checkpoints when a newer one is complete is nobody's loss, also when it is killed in between."""
    trial = CommandJournal(SAVED).attempt().saves(2, 4, 6).removes(2).tears(4).cut(label="retire of save 6")
    passes(trial.attempt(closing=True).says_resumed(6).removes(4).saves(8).finishes())
