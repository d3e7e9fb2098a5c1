"""Storage that is empty at the restart: that of one node, or what all share."""

from __future__ import annotations

from chaosckpt.faults.local_storage_loss import LocalStorageLoss
from chaosckpt.faults.shared_storage_loss import SharedStorageLoss


def test_node_local_storage_is_dropped_on_one_node(job):
    """The evidence is the number of files that were there."""
    assert LocalStorageLoss(node=1).prepare(job) == "3 files deleted from the node-local storage of node 1"
    assert job.acts == ["drop local of 1"]


def test_shared_storage_is_dropped(job):
    """The whole tier goes, of no node in particular."""
    assert SharedStorageLoss().prepare(job) == "3 files deleted from shared storage"
    assert job.acts == ["drop shared of None"]
