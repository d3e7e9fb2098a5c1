from __future__ import annotations

from chaosckpt.oracle import check
from tests.oracle.journals import SCENARIO, TargetJournal, interrupted


def test_reported_step_that_is_not_the_loaded_one() -> None:
    """Saying step 2 with the whole state of step 4 in memory is told, with both."""
    primary = check(SCENARIO, interrupted().recovers(2, shown=4).ends_well().journal()).primary
    assert primary is not None
    assert (primary.invariant, primary.error_type) == ("reported-step", "wrong-step")
    assert "that it loaded step 2" in primary.sentence
    assert "step 4 saved in attempt 0" in primary.sentence


def test_loaded_older_than_said_is_reported_first_and_not_newest_second() -> None:
    """Saying the required step and loading an older one breaks both; the lie is the primary violation."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).saves(4).cut()
    verdict = check(SCENARIO, trial.attempt(closing=True).recovers(4, shown=2).ends_well().journal())
    assert verdict.primary is not None
    assert verdict.primary.invariant == "reported-step"
    assert "newest-complete" in {other.invariant for other in verdict.others}


def test_nothing_said_but_parameters_of_a_save_left_in_memory() -> None:
    """A recovery that gave up half-way and says Nothing may not leave a checkpoint's parameters in the live model."""
    trial = TargetJournal(faults=[["cut"]], fresh_start="allowed").attempt().recovers(None).starts_save(2).cut()
    primary = check(SCENARIO, trial.attempt(closing=True).recovers(None, shown=2).ends_well().journal()).primary
    assert primary is not None
    assert (primary.invariant, primary.error_type) == ("reported-step", "leftover-state")


def test_honest_recoveries_are_silent() -> None:
    """The right step, or Nothing with the state as it was built, is no lie."""
    assert check(SCENARIO, interrupted().recovers(4).ends_well().journal()).outcome == "pass"
    assert check(SCENARIO, TargetJournal().attempt(closing=True).recovers(None).ends_well().journal()).outcome == "pass"
