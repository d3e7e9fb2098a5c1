"""A tier that takes no more writes."""

from __future__ import annotations

import errno

import pytest

from chaosckpt.faults.read_only import ReadOnly
from chaosckpt.model.fault import Errno, Memory
from tests.faults.operations import operation, trigger


def test_it_is_in_force_on_every_node_before_anybody_goes_on(job):
    """At rest, all are told, then all go on."""
    ReadOnly(trigger()).inject(job)
    assert job.acts == ["await rest", "activate", "resume"]


@pytest.mark.parametrize("op", ["open_write", "write", "mkdir", "rename", "unlink", "fsync"])
def test_what_writes_is_refused_while_it_is_in_force(op):
    """Of every rank, on the trigger's tier only."""
    fault = ReadOnly(trigger())
    assert fault.decide(operation(op), Memory()) is None
    assert fault.decide(operation(op), Memory(took_effect=True)) == Errno(errno.EROFS)
    assert fault.decide(operation(op, "local:f"), Memory(took_effect=True)) is None


@pytest.mark.parametrize("op", ["open_read", "read", "stat", "list", "close"])
def test_reading_goes_on(op):
    """What was written is there to be read."""
    assert ReadOnly(trigger()).decide(operation(op), Memory(took_effect=True)) is None
