from __future__ import annotations

import pytest

from chaosckpt.oracle import check
from tests.oracle.journals import SCENARIO, Story, interrupted, operation


def test_older_checkpoint_is_a_violation() -> None:
    """Resuming from step 2 when step 4 had been acknowledged breaks it; the sentence names rank, steps, and file."""
    story = Story(faults=[["cut"]]).attempt().recovers(None).saves(2).saves(4)
    verdict = check(SCENARIO, story.cut(operation()).attempt(closing=True).recovers(2).ends_well().journal())
    assert verdict.primary is not None
    assert verdict.primary.invariant == "newest-complete"
    assert verdict.primary.error_type == "older-checkpoint"
    assert verdict.primary.path == "shared:step-000004/__0_0.distcp"
    for words in ("rank 0", "step 2 saved by attempt 0", "step 4 saved by attempt 0", "__0_0.distcp"):
        assert words in verdict.primary.sentence


def test_nothing_in_spite_of_an_acknowledgement_is_a_violation() -> None:
    """Beginning at step 0 when step 2 had been acknowledged breaks it, whatever the scenario says of fresh starts."""
    for fresh_start in ("refused", "allowed"):
        verdict = check(SCENARIO, interrupted(fresh_start=fresh_start).recovers(None).ends_well().journal())
        assert verdict.primary is not None
        assert (verdict.primary.invariant, verdict.primary.error_type) == ("newest-complete", "nothing-chosen")


def test_failure_to_recover_is_a_violation_of_its_own_kind() -> None:
    """An exception names the rank with an error of its own, not the peer that lost its connection by it."""
    story = interrupted().begins_recovery()
    story.raises("recover", "RuntimeError", "Connection closed by peer [127.0.0.1]:1234", ranks=[0])
    story.raises("recover", "EOFError", "Ran out of input", ranks=[1]).ends("failed")
    verdict = check(SCENARIO, story.journal())
    assert verdict.primary is not None
    assert (verdict.primary.invariant, verdict.primary.error_type) == ("newest-complete", "EOFError")
    assert verdict.primary.rank == 1
    assert [violation.invariant for violation in verdict.others] == ["never-bare"]


def test_process_that_just_ends_in_recovery_is_a_violation() -> None:
    """A rank that crashes in recovery without an exception has failed to recover, too."""
    verdict = check(SCENARIO, interrupted().begins_recovery().exits(-1).ends("failed").journal())
    assert verdict.primary is not None
    assert (verdict.primary.invariant, verdict.primary.error_type) == ("newest-complete", "silent-exit")


def test_failure_of_a_recovery_that_a_fault_struck_is_not_judged() -> None:
    """A recovery into which an error was injected may fail; the next one has to succeed."""
    story = Story(faults=[["cut"], ["errno"]]).attempt().recovers(None).saves(2).cut()
    story.attempt().begins_recovery().injects().raises("recover", "OSError", "Input/output error").ends("failed")
    passing = check(SCENARIO, story.attempt(closing=True).recovers(2).ends_well().journal())
    assert passing.outcome == "pass", passing


def test_fallback_after_an_injected_error_is_allowed_but_an_empty_hand_is_not() -> None:
    """An error injected into recovery may cost the newest checkpoint; a silent step 0 stays a violation."""
    for chosen, outcome in ((2, "pass"), (None, "violation")):
        story = Story(faults=[["cut"], ["errno"]]).attempt().recovers(None).saves(2).saves(4).cut()
        story.attempt().begins_recovery().injects().recovers(chosen).saves(6).finishes().ends("finished")
        verdict = check(SCENARIO, story.attempt(closing=True).recovers(6).finishes().ends("finished").journal())
        assert verdict.outcome == outcome, verdict
        assert verdict.primary is None or verdict.primary.invariant == "clear-failure"


def test_latency_in_a_recovery_excuses_no_older_choice() -> None:
    """A fault that harms nothing leaves the required checkpoint required."""
    story = Story(faults=[["cut"], ["latency"]]).attempt().recovers(None).saves(2).saves(4).cut()
    story.attempt().begins_recovery().fault("latency", at=operation(op="read")).recovers(2).saves(6)
    verdict = check(SCENARIO, story.finishes().ends("finished").attempt(closing=True).recovers(6).ends_well().journal())
    assert verdict.primary is not None
    assert verdict.primary.invariant == "newest-complete"


def test_rank_killed_in_its_recovery_ends_the_judgement_of_that_attempt() -> None:
    """Peers of a rank that a fault killed inside recovery may fail as they like."""
    story = Story(faults=[["cut"], ["sigkill"]]).attempt().recovers(None).saves(2).cut()
    story.attempt().begins_recovery().fault("sigkill", at=operation(rank=1, op="read")).exits(by="fault", ranks=[1])
    story.raises("recover", "RuntimeError", "Connection closed by peer", ranks=[0]).ends("killed")
    verdict = check(SCENARIO, story.attempt(closing=True).recovers(2).ends_well().journal())
    assert verdict.outcome == "pass", verdict


@pytest.mark.parametrize("variant", ["", "other"])
def test_resave_of_the_same_step_counts_by_its_bytes(variant: str) -> None:
    """The older of two saves of one step is as good as the newer only where their bytes are equal."""
    story = Story(faults=[["cut"], ["cut"]]).attempt().recovers(None).saves(2).saves(4).cut()
    story.attempt(variant=variant).recovers(4, variant="", attempt=0).saves(4).cut()
    verdict = check(SCENARIO, story.attempt(closing=True).recovers(4, attempt=0).ends_well().journal())
    assert verdict.outcome == ("pass" if variant == "" else "violation"), verdict
    assert verdict.primary is None or "older" in verdict.primary.error_type


def test_nothing_required_is_not_judged() -> None:
    """Without an acknowledged save there is nothing that recovery had to find."""
    story = Story(faults=[["cut"]]).attempt().recovers(None).starts_save(2).cut()
    verdict = check(SCENARIO, story.attempt(closing=True).recovers(None).ends_well().journal())
    assert verdict.outcome == "pass"
    assert "newest-complete" not in verdict.judged
