"""The whole-job kill at a cut."""

from __future__ import annotations

import pytest

from chaosckpt.faults.cut import Cut
from tests.faults.operations import trigger


def test_a_cut_waits_for_rest_and_kills_everyone(job):
    """A cut holds all its triggers, and strikes only when every rank is at rest."""
    cut = Cut((trigger(rank=0), trigger(rank=1)))
    cut.land(job)
    assert cut.holds() == (trigger(rank=0), trigger(rank=1))
    assert job.acts == ["await rest", "kill job"]


@pytest.mark.parametrize("at", [(), (trigger(rank=1), trigger(rank=1, nth=2))])
def test_a_cut_names_each_rank_once(at):
    """A cut through no rank, or twice through one, can't be made."""
    with pytest.raises(ValueError, match="one operation a rank"):
        Cut(at)


def test_steps_are_held_but_not_struck():
    """A cut through training threads holds their steps too; what it strikes are operations, which shrinking moves."""
    cut = Cut((trigger(rank=1),), ((0, 3), (1, 3)))
    assert [str(held.address.path) for held in cut.holds()[1:]] == ["step:3", "step:3"]
    assert cut.strikes() == (trigger(rank=1),)
    assert "rank 0 about to train step 3" in cut.describe()
    with pytest.raises(ValueError, match="one training step a rank"):
        Cut((trigger(),), ((0, 3), (0, 4)))


def test_a_cut_with_steps_is_simpler_without_them():
    """Steps are left out first, all of them, then one by one; then all ranks train a step less."""
    cut = Cut((trigger(rank=1),), ((0, 3), (1, 3)))
    assert [simpler.steps for simpler in cut.simpler()] == [(), ((1, 3),), ((0, 3),), ((0, 2), (1, 2))]
    assert list(Cut((trigger(),)).simpler()) == []
