from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model.digest import StateDigest
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle import NotJudged, TargetView, check
from chaosckpt.oracle.invariants.trajectory import trajectory
from tests.oracle.journals import SCENARIO, TargetJournal
from tests.oracle.states import loss, state


def resumed(ranks: tuple[int, ...] = (1, 1), sharded: bool = False) -> TargetJournal:
    """Attempt 0 saved step 2, and was killed; the closing attempt, with these ranks, resumed from step 2."""
    trial = TargetJournal(faults=[["cut"]], sharded=sharded).attempt().recovers(None).saves(2).cut().reference(0, 2)
    return trial.attempt(ranks, closing=True).recovers(2)


def _found(trial: TargetJournal) -> Violation | None:
    verdict = check(SCENARIO, trial.journal())
    assert "trajectory" in verdict.judged, verdict
    found = [v for v in (verdict.primary, *verdict.others) if v is not None and v.invariant == "trajectory"]
    assert len(found) < 2
    return found[0] if found else None


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("ranks", [(1, 1), (2, 1), (1,)])
def test_steps_that_equal_the_reference_pass(ranks: tuple[int, ...], sharded: bool) -> None:
    """Bitwise equal steps after a recovery are right, in every world."""
    assert _found(resumed(ranks, sharded).saves(4).ends_well().reference(2)) is None


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        ("params", state(4, variant="b").params, "the parameters differ"),
        ("optimizer_scalars", {"0.lr": "float:0.5"}, "the optimizer differs"),
        ("scheduler", {"last_epoch": "int:3"}, "the scheduler differs"),
        ("sampler", {"position": "int:12"}, "the sampler differs"),
    ],
)
def test_part_that_goes_another_way(part: str, value: object, said: str) -> None:
    """The first step with another state is told by its part."""

    def change(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, **{part: value})

    found = _found(resumed().starts_save(4, but=change).acknowledges(4).ends_well().reference(2))
    assert found is not None
    assert (found.attempt, found.step, found.rank) == (1, 4, None)
    assert said in found.sentence


def test_parts_on_which_ranks_disagree() -> None:
    """Where one rank alone went another way, the sentence says between which ranks the difference lies."""

    def change(digest: StateDigest) -> StateDigest:
        return digest if digest.rank == 0 else msgspec.structs.replace(digest, scheduler={"last_epoch": "int:3"})

    found = _found(resumed().starts_save(4, but=change).acknowledges(4).ends_well().reference(2))
    assert found is not None
    assert "scheduler T_max: rank 0 has int:60, rank 1 has nothing" in found.sentence


def test_random_streams_of_one_rank() -> None:
    """A rank whose streams are others after a step is named."""

    def change(digest: StateDigest) -> StateDigest:
        return digest if digest.rank == 0 else msgspec.structs.replace(digest, rng={"torch": "another"})

    found = _found(resumed().starts_save(4, but=change).acknowledges(4).ends_well().reference(2))
    assert found is not None
    assert (found.step, found.rank, found.error_type) == (4, 1, "other-random-streams")


def test_loss_of_a_step_between_two_saves() -> None:
    """The loss of each step counts, and the earliest difference is told."""
    trial = resumed()
    trial.loss = lambda step, rank, world: loss(step, rank, world) if (step, rank) != (3, 1) else "0x1.8p+0"
    found = _found(trial.saves(4).ends_well().reference(2))
    assert found is not None
    assert (found.step, found.rank, found.error_type) == (3, 1, "other-loss")
    assert "after step 3 the loss of rank 1 differs" in found.sentence


def test_attempt_that_began_from_nothing() -> None:
    """The first attempt is compared, too."""
    trial = TargetJournal().attempt(closing=True).recovers(None)
    trial.loss = lambda step, rank, world: "0x1.8p+0"
    found = _found(trial.saves(2).ends_well().reference(0))
    assert found is not None
    assert "Attempt 0 started at step 0" in found.sentence


def test_not_judged_where_nothing_can_be_compared() -> None:
    """Other streams to begin with, a recovery that wasn't exact, or no reference: nothing is judged."""

    def reseeded(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, rng={"torch": f"other/{digest.rank}"})

    def unscheduled(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, scheduler={"last_epoch": "int:0"})

    first = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).cut().attempt(closing=True)
    stories = [
        resumed((1,)).ends_well().reference(2, start=reseeded),
        first.recovers(2, but=unscheduled).ends_well().reference(2),
        resumed().ends_well(),
    ]
    words = ["other random streams", "exactly the saved state", "no reference"]
    for trial, said in zip(stories, words, strict=True):
        events = [event for event in trial.events if event.attempt == 1 or type(event).__name__ != "Reference"]
        view = TargetView(SCENARIO, type(trial.journal())(tuple(events)))
        found = trajectory.judge(view)
        assert isinstance(found, NotJudged)
        assert said in found.reason
