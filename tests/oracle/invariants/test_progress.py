from __future__ import annotations

import pytest

from chaosckpt.oracle import check
from tests.oracle.journals import SCENARIO, Story, interrupted, operation


def _primary(story: Story) -> tuple[str, str]:
    primary = check(SCENARIO, story.journal()).primary
    assert primary is not None
    return primary.invariant, primary.error_type


@pytest.mark.parametrize("where", ["save", "train", "wait", "close"])
def test_exception_in_the_closing_attempt(where: str) -> None:
    """A leftover that makes the next save fail blocks the job; the error of its own is named, not the peer's."""
    story = interrupted().recovers(2).starts_save(4)
    story.raises(where, "RuntimeError", "Connection reset by peer", ranks=[0])
    story.raises(where, "FileExistsError", "shared/step-000004 exists", ranks=[1]).ends("failed")
    assert _primary(story) == ("progress", "FileExistsError")


def test_hang_in_training() -> None:
    """A closing attempt that hangs after recovery, confirmed, makes no progress."""
    story = interrupted().recovers(2).starts_save(4).exits(by="harness").ends("hung", confirmed=True)
    assert _primary(story) == ("progress", "hang")


def test_end_before_the_last_step() -> None:
    """An orderly end at the wrong step is no end of the job."""
    assert _primary(interrupted().recovers(2).finishes(4).ends("finished")) == ("progress", "wrong-end")


def test_exit_without_a_word() -> None:
    """A rank that just ends has not finished."""
    assert _primary(interrupted().recovers(2).exits(0).ends("finished")) == ("progress", "silent-exit")


def test_remains_of_a_first_save_that_block_the_start() -> None:
    """Before anything was acknowledged a job may start anew, so an exception on remains blocks it."""
    story = Story(faults=[["cut"]]).attempt().recovers(None).starts_save(2).cut().attempt(closing=True)
    story.begins_recovery().raises("recover", "EOFError", "Ran out of input").ends("failed")
    assert _primary(story) == ("progress", "EOFError")


def test_failures_of_earlier_attempts_are_not_judged() -> None:
    """Only the closing attempt has to end: an attempt whose save was struck may fail."""
    story = Story(faults=[["errno"]]).attempt().recovers(None).saves(2).starts_save(4).injects()
    story.raises("save", "OSError", "Input/output error").ends("failed")
    verdict = check(SCENARIO, story.attempt(closing=True).recovers(2).ends_well().journal())
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
    story = Story(faults=[[kind]]).attempt().recovers(None).saves(2).starts_save(4)
    if kind == "errno":
        story.injects("EIO", operation(), "persist of save 4")
    else:
        story.fault(kind, at=operation(), label="persist of save 4")
    story.exits(by="harness").ends("hung", confirmed=confirmed)
    verdict = check(SCENARIO, story.attempt(closing=True).recovers(2).ends_well().journal())
    assert verdict.outcome == outcome, verdict
    if verdict.primary is not None:
        assert (verdict.primary.invariant, verdict.primary.error_type) == ("progress", "hang")
        assert "Attempt 0, in which faults delayed operations and harmed nothing" in verdict.primary.sentence
