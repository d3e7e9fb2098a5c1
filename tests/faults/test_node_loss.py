"""The loss of a failure group."""

from __future__ import annotations

from chaosckpt.faults.node_loss import NodeLoss
from tests.faults.operations import trigger


def test_node_loss_takes_the_whole_failure_group(job):
    """Every node of the group is lost, and nothing else happens: ranks elsewhere live on."""
    job.failure_groups = [[0], [1, 2]]
    NodeLoss(trigger(), group=1).land(job)
    assert job.acts == ["await rest", "lose node 1", "lose node 2"]
