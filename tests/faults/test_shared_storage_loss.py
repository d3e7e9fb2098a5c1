"""Shared storage empty at the restart."""

from __future__ import annotations

from chaosckpt.faults.shared_storage_loss import SharedStorageLoss


def test_shared_storage_is_dropped(job):
    """The whole tier goes, of no node in particular."""
    assert SharedStorageLoss().prepare(job) == "3 files deleted from shared storage"
    assert job.acts == ["drop shared of None"]
