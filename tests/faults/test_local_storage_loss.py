"""Node-local storage empty at the restart."""

from __future__ import annotations

from chaosckpt.faults.local_storage_loss import LocalStorageLoss


def test_node_local_storage_is_dropped_on_one_node(job):
    """The evidence is the number of files that were there."""
    assert LocalStorageLoss(node=1).prepare(job) == "3 files deleted from the node-local storage of node 1"
    assert job.acts == ["drop local of 1"]
