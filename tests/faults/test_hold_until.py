"""A race between two ranks, decided."""

from __future__ import annotations

import pytest

from chaosckpt.faults.hold_until import HoldUntil
from tests.faults.operations import trigger


def test_both_go_on_when_the_peer_has_passed(job):
    """One is held before its operation, the peer after its own: then both are let go."""
    fault = HoldUntil(trigger(rank=1), trigger(rank=0, when="after"))
    fault.inject(job)
    assert job.acts == ["resume"]
    assert fault.holds() == fault.triggers() == (fault.at, fault.until)


@pytest.mark.parametrize(
    ("at", "until", "why"),
    [
        (trigger(rank=1), trigger(rank=1, when="after", nth=2), "can't wait for itself"),
        (trigger(rank=1, when="after"), trigger(rank=0, when="after"), "held before"),
        (trigger(rank=1), trigger(rank=0), "held before"),
    ],
)
def test_what_decides_no_race_is_refused(at, until, why):
    """Two ranks, one before and one after its operation: nothing else is an order of the two."""
    with pytest.raises(ValueError, match=why):
        HoldUntil(at, until)


def test_moved_takes_two_operations():
    """Shrinking moves both ends; to one operation alone a race can't be moved."""
    fault = HoldUntil(trigger(rank=1), trigger(rank=0, when="after"))
    there = fault.moved([trigger(rank=1, nth=3), trigger(rank=0, nth=4)])
    assert (there.at.address.nth, there.until.address.nth, there.until.when) == (3, 4, "after")
    assert fault.moved([trigger(rank=1, nth=3)]) is fault
