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
