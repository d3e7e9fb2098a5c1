"""The stop of one rank."""

from __future__ import annotations

from chaosckpt.faults.sigstop import Sigstop
from tests.faults.operations import trigger


def test_a_stopped_rank_stays_stopped_while_its_peers_live_on(job):
    """The rank of the trigger is stopped once its peers are at rest; nothing that it holds is let go."""
    Sigstop(trigger(rank=1)).inject(job)
    assert job.acts == ["await rest", "stop rank 1"]


def test_a_zombie_goes_on_when_its_peers_have_ended(job):
    """With `continues` it writes on, after everybody has given it up."""
    fault = Sigstop(trigger(rank=1), continues=True)
    fault.inject(job)
    assert job.acts == ["await rest", "stop rank 1", "await survivors", "continue rank 1"]
    assert list(fault.simpler()) == [Sigstop(trigger(rank=1))]
