from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model.digest import StateDigest
from chaosckpt.oracle import check
from tests.oracle.journals import SCENARIO, Story, interrupted, state

AS_BUILT = {
    "optimizer": {},
    "optimizer_scalars": {"0.lr": "float:0.5"},
    "scheduler": {"last_epoch": "int:0", "T_max": "int:60"},
    "rng": {"torch": "seed", "python": "seed", "numpy": "seed"},
    "sampler": {"position": "int:0", "dataset": "int:64", "seed": "int:0"},
    "step": 0,
}
NAMES = {"optimizer_scalars": "optimizer-settings"}


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("part", AS_BUILT)
def test_component_that_was_not_restored(part: str, sharded: bool) -> None:
    """A component left as it was built beside restored parameters is named."""

    def change(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, **{part: AS_BUILT[part]})

    journal = interrupted(sharded=sharded).recovers(2, but=change).ends_well().journal()
    primary = check(SCENARIO, journal).primary
    assert primary is not None
    assert (primary.invariant, primary.error_type) == ("full-state", "lost-" + NAMES.get(part, part))
    assert "step 2 saved by attempt 0" in primary.sentence


def test_random_streams_of_rank_0_on_every_rank() -> None:
    """A rank that was given rank 0's streams is told so."""

    def change(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, rng=state(2, 0).rng)

    primary = check(SCENARIO, interrupted().recovers(2, but=change).ends_well().journal()).primary
    assert primary is not None
    assert (primary.invariant, primary.rank) == ("full-state", 1)
    assert "it is that of rank 0" in primary.sentence


def test_optimizer_lost_by_a_change_of_world() -> None:
    """The optimizer is compared in another world, too."""
    story = Story(faults=[["cut"]], sharded=True).attempt().recovers(None).saves(2).cut()

    def change(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, optimizer={})

    primary = check(SCENARIO, story.attempt((1,), closing=True).recovers(2, but=change).ends_well().journal()).primary
    assert primary is not None
    assert (primary.invariant, primary.error_type) == ("full-state", "lost-optimizer")
