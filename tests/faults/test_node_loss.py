"""The loss of a failure group."""

from __future__ import annotations

from chaosckpt.faults.node_loss import NodeLoss
from tests.faults.operations import trigger


def test_node_loss_takes_the_whole_failure_group(job):
    """Every node of the group is lost, and nothing else happens: ranks elsewhere live on."""
    job.failure_groups = [[2], [0, 1]]
    NodeLoss(trigger(), group=1).inject(job)
    assert job.acts == ["await rest", "lose node 0", "lose node 1"]


def test_a_trigger_that_lives_on_is_let_go(job):
    """A rank that was held to place the loss of another node is a survivor like the others."""
    NodeLoss(trigger(rank=1), group=1).inject(job)
    assert job.acts == ["await rest", "lose node 1", "resume"]
