from __future__ import annotations

from tests.oracle.command_journals import SAVED, UNSAID, CommandJournal, killed_in_save_4
from tests.oracle.journals import passes


def test_a_save_on_a_signal_is_unknown():
    """A step that no golden run saved may be resumed from, and is something that is left."""
    trial = (
        CommandJournal(UNSAID, faults=[["sigterm"]])
        .attempt()
        .saves_unknown(1)
        .fault("sigterm", at=CommandJournal.struck, label="persist of save 2")
        .kills()
    )
    passes(trial.attempt(closing=True).says_resumed(1).saves(2, 4, 6).finishes())


def test_other_bytes_after_a_change_of_ranks():
    """What a fresh start with another number of ranks saves has no golden run to be compared with."""
    trial = CommandJournal(SAVED, faults=[["cut"], ["world-size", "cut"]]).attempt([2]).cut(label="persist of save 2")
    trial.attempt([1]).fault("world-size", at=CommandJournal.struck).tears(2).tears(4).says_saved(2, 4).cut(
        label="persist of save 4"
    )
    trial.events = [e for e in trial.events if getattr(e, "kind", "") != "world-size"]
    verdict = trial.attempt([1], closing=True).says_resumed(4).tears(6).finishes(equal=None).verdict()
    assert verdict.primary is None


def test_other_bytes_without_a_fault_put_the_standard_in_doubt():
    """Where a launch without any fault leaves what no golden run did, completeness isn't judged, and the trial says so."""
    judged = ("checkpoints", "resumed", "resumes")
    resumed = killed_in_save_4(judged=judged).attempt(closing=True).says_resumed(2).tears(6).finishes()
    struck_later = (
        CommandJournal(judged)
        .attempt()
        .tears(2)
        .tears(4)
        .tears(6)
        .cut(label="persist of save 6")
        .attempt(closing=True)
        .says_resumed(6)
        .finishes()
    )
    for trial in (resumed, struck_later):
        verdict = trial.verdict()
        assert verdict.outcome == "inconclusive"
        assert "do not show what a complete checkpoint is" in verdict.reason


def test_damage_is_nobodys_promise():
    """Of a damaged file nothing is asked."""
    trial = CommandJournal(SAVED, faults=[["cut"], ["bit-flip"]]).attempt().saves(2, 4).cut(label="persist of save 6")
    trial.mutates("out:ckpt-2.pt").fault("bit-flip", between=True)
    trial.attempt().says_resumed(2).saves(4, 6).finishes()
    verdict = trial.attempt(closing=True).says_resumed(2).saves(4, 6).finishes(equal=False).verdict()
    assert verdict.primary is None
