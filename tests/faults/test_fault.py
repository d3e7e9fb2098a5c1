"""What all kinds have in common."""

from __future__ import annotations

import pytest

from chaosckpt.faults.cut import Cut
from chaosckpt.faults.local_storage_loss import LocalStorageLoss
from chaosckpt.faults.node_loss import NodeLoss
from chaosckpt.faults.shared_storage_loss import SharedStorageLoss
from chaosckpt.faults.sigkill import Sigkill
from chaosckpt.faults.sigterm import Sigterm
from chaosckpt.model.phrasing import describe_trigger
from tests.faults.operations import trigger


@pytest.mark.parametrize("fault", [Sigkill(trigger()), Sigterm(trigger()), NodeLoss(trigger()), Cut((trigger(),))])
def test_moved_keeps_all_but_the_place(fault):
    """Shrinking moves a fault to another operation and changes nothing else."""
    elsewhere = trigger(op="rename", rank=0)
    moved = fault.moved([elsewhere])
    assert moved.triggers() == (elsewhere,)
    assert moved.moved(fault.triggers()) == fault
    assert describe_trigger(elsewhere) in moved.describe()


def test_nothing_to_drop_is_no_evidence(job):
    """A storage that was empty anyway gives no evidence, so that the trial isn't taken for a pass."""
    job.files = 0
    assert LocalStorageLoss().prepare(job) is None
    assert SharedStorageLoss().prepare(job) is None
