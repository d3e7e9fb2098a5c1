from __future__ import annotations

import pytest

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle import NotJudged, TrialView, check
from chaosckpt.oracle.invariants.never_bare import bare, never_bare
from chaosckpt.oracle.recovery import recoveries
from tests.oracle.journals import SCENARIO, Story, interrupted, operation


def _found(story: Story) -> list[Violation] | NotJudged:
    return never_bare.judge(TrialView(SCENARIO, story.journal()))


def test_nothing_on_any_rank() -> None:
    """Nothing at all, or a failure of every rank, is bare; it stands beside newest-complete, which comes first."""
    failed = interrupted().begins_recovery().raises("recover", "CheckpointError", "nothing in shared/step-*")
    for story in (interrupted().recovers(None).ends_well(), failed.ends("failed")):
        verdict = check(SCENARIO, story.journal())
        assert verdict.primary is not None
        assert verdict.primary.invariant == "newest-complete"
        bares = [violation for violation in verdict.others if violation.invariant == "never-bare"]
        assert [violation.error_type for violation in bares] == ["bare"]
        assert "step 2 saved by attempt 0 had been acknowledged" in bares[0].sentence


def test_older_or_partly_loaded_is_not_bare() -> None:
    """Whoever loads anything isn't bare, be it too old; nor is a job of which one rank loads."""
    story = Story(faults=[["cut"]]).attempt().recovers(None).saves(2).saves(4).cut().attempt(closing=True)
    assert _found(story.recovers(2).ends_well()) == []
    partly = interrupted().recovers(2, ranks=[0]).begins_recovery([1]).raises("recover", "OSError", "x", ranks=[1])
    assert _found(partly.exits(1, ranks=[0]).ends("failed")) == []


@pytest.mark.parametrize("harm", ["destroyed", "damaged", "struck", "never acknowledged"])
def test_not_judged_where_storage_or_recovery_was_struck(harm: str) -> None:
    """Loss, damage or a fault in the recovery itself may leave nothing; before the first acknowledgement there is nothing."""
    story = Story(faults=[["cut"]]).attempt().recovers(None)
    story = story.starts_save(2) if harm == "never acknowledged" else story.saves(2)
    story.cut()
    if harm == "destroyed":
        story.destroys("local", 0, "local-storage-loss")
    if harm == "damaged":
        story.mutates("shared:step-000002/rank-0.pt")
    story.attempt(closing=True)
    if harm == "struck":
        story.begins_recovery().injects("EIO", operation(op="read"))
    assert isinstance(_found(story.raises("recover", "CheckpointError", "x").ends("failed")), NotJudged)


def test_planted_files_are_no_excuse() -> None:
    """What a fault only added to storage, or whose times it changed, leaves every checkpoint as it was."""
    story = Story(faults=[["cut"]]).attempt().recovers(None).saves(2).cut()
    story.mutates("shared:step-000099", "a directory that an interrupted run left", damages=False)
    found = _found(story.attempt(closing=True).recovers(None).ends_well())
    assert isinstance(found, list)
    assert len(found) == 1


def test_bare_is_told_of_one_recovery() -> None:
    """The function judges a single recovery: a hang or a killed rank is not bare."""
    story = interrupted().begins_recovery().exits(by="harness").ends("hung")
    assert not bare(recoveries(TrialView(SCENARIO, story.journal()))[-1])
    assert bare(recoveries(TrialView(SCENARIO, interrupted().recovers(None).journal()))[-1])
