"""The kill of one rank."""

from __future__ import annotations

from chaosckpt.faults.sigkill import Sigkill
from tests.faults.operations import trigger


def test_sigkill_takes_its_triggers_rank_and_lets_the_others_live(job):
    """Only the rank of the trigger is killed, after its peers are at rest, so that their position is exact."""
    Sigkill(trigger(rank=1)).inject(job)
    assert job.acts == ["await rest", "kill rank 1"]
