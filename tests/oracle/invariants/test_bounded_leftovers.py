from __future__ import annotations

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle import NotJudged, TargetView
from chaosckpt.oracle.invariants.bounded_leftovers import bounded_leftovers
from tests.oracle.journals import SCENARIO, TargetJournal, interrupted

LEFT = {"shared:step-000004.tmp/state.pt": 700, "shared:step-000004.tmp/rank-0.pt": 300, "shared:a.tmp": 1}


def _found(trial: TargetJournal) -> list[Violation] | NotJudged:
    return bounded_leftovers.judge(TargetView(SCENARIO, trial.journal()))


def test_within_the_bound() -> None:
    """As many bytes as the target declares may be left for good."""
    assert _found(interrupted().recovers(2).ends_well().leaves(LEFT, 1001)) == []


def test_more_than_the_bound() -> None:
    """The sentence names the largest files, and how many bytes there are."""
    found = _found(interrupted().recovers(2).ends_well().leaves(LEFT | {"shared:b.tmp": 0}, 1000))
    assert isinstance(found, list)
    assert [violation.error_type for violation in found] == ["abandoned-files"]
    assert "4 files with 1001 bytes remained" in found[0].sentence
    assert "step-000004.tmp/state.pt (700 bytes), step-000004.tmp/rank-0.pt (300 bytes)" in found[0].sentence


def test_what_a_fault_planted_does_not_count() -> None:
    """Files that the harness itself put there, or damaged, are not the target's."""
    trial = TargetJournal(faults=[["cut"], ["stale"]]).attempt().recovers(None).saves(2).starts_save(4).cut()
    trial.mutates("shared:step-000099", "a directory of another run", damages=False).attempt(closing=True)
    assert _found(trial.recovers(2).ends_well().leaves({"shared:step-000099/state.pt": 5000}, 0)) == []


def test_not_judged_without_an_end() -> None:
    """A job that refuses to go on, or has nothing left to save, can't be asked to tidy up; nor is a silent journal judged."""
    assert isinstance(_found(interrupted().recovers(2).ends_well()), NotJudged)
    refused = interrupted().begins_recovery().raises("recover", "CheckpointError", "x").ends("failed")
    assert isinstance(_found(refused.leaves(LEFT, 0)), NotJudged)
    through = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(6).cut().attempt(closing=True).recovers(6)
    assert isinstance(_found(through.finishes().ends("finished").leaves(LEFT, 0)), NotJudged)
