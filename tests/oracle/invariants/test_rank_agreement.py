from __future__ import annotations

import pytest

from chaosckpt.oracle import check
from tests.oracle.journals import SCENARIO, TargetJournal, interrupted


@pytest.mark.parametrize("sharded", [False, True])
def test_ranks_that_chose_different_steps(sharded: bool) -> None:
    """Each rank's state is whole and honest, yet they are of different steps."""
    trial = interrupted(sharded=sharded).recovers(4, ranks=[0]).recovers(2, ranks=[1]).ends_well()
    primary = check(SCENARIO, trial.journal()).primary
    assert primary is not None
    assert (primary.invariant, primary.error_type) == ("rank-agreement", "different-steps")
    assert "rank 0 has step 4, rank 1 has step 2" in primary.sentence


def test_one_rank_with_nothing() -> None:
    """A rank that begins anew beside one that resumes disagrees, and that comes before what it should have found."""
    trial = interrupted().recovers(2, ranks=[0]).recovers(None, ranks=[1]).ends_well()
    verdict = check(SCENARIO, trial.journal())
    assert verdict.primary is not None
    assert verdict.primary.invariant == "rank-agreement"
    assert "newest-complete" in {other.invariant for other in verdict.others}


def test_same_step_of_different_generations() -> None:
    """The same step saved by two attempts with different bytes is not the same checkpoint."""
    trial = TargetJournal((1, 1), faults=[["cut"], ["cut"]]).attempt().recovers(None).saves(2).starts_save(4).cut()
    trial.attempt(variant="b").recovers(2, variant="", attempt=0).starts_save(4).cut().attempt(closing=True)
    trial.recovers(4, variant="", ranks=[0]).recovers(4, variant="b", ranks=[1]).ends_well()
    primary = check(SCENARIO, trial.journal()).primary
    assert primary is not None
    assert (primary.invariant, primary.error_type) == ("rank-agreement", "different-generations")


def test_agreement_is_silent_and_a_lone_rank_is_not_judged() -> None:
    """Ranks that agree are right; one rank has nobody to agree with."""
    assert "rank-agreement" in check(SCENARIO, interrupted().recovers(4).ends_well().journal()).judged
    alone = check(SCENARIO, interrupted(ranks=(1,)).recovers(4).ends_well().journal())
    assert alone.outcome == "pass"
    assert "rank-agreement" not in alone.judged
