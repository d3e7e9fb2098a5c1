"""Storage that is full, as a budget of bytes."""

from __future__ import annotations

import errno
import os

import pytest

from chaosckpt.faults.space import Space
from chaosckpt.model.fault import Errno, Memory, Short
from tests.faults.operations import operation

ENOSPC = Errno(errno.ENOSPC)


def test_the_write_that_crosses_the_budget_is_cut_short_and_the_next_one_fails():
    """Like a real file system: the bytes that fit are written, then there is no space."""
    fault, memory = Space(budget_bytes=150), Memory()
    assert fault.decide(operation(length=100, offset=0), memory) is None
    before = memory.took_effect
    assert fault.decide(operation(length=100, offset=100), memory) == Short(50)
    assert (before, memory.took_effect) == (False, True)
    assert fault.decide(operation(length=50, offset=150), memory) == ENOSPC


def test_writing_over_bytes_needs_no_space():
    """What a file holds already is in use; only growth counts."""
    fault, memory = Space(budget_bytes=100), Memory()
    for _ in range(3):
        assert fault.decide(operation(length=100, offset=0), memory) is None
    assert fault.decide(operation(length=120, offset=0), memory) == Short(100)


@pytest.mark.parametrize(
    "freeing",
    [
        operation("unlink"),
        operation("open_write", flags=os.O_TRUNC | os.O_WRONLY),
        operation("rename", "shared:other", destination="shared:step_4/__1_0.distcp"),
    ],
)
def test_bytes_are_given_back(freeing):
    """Unlinking a file, truncating it and renaming another over it make space."""
    fault, memory = Space(budget_bytes=100), Memory()
    assert fault.decide(operation(length=100, offset=0), memory) is None
    assert fault.decide(operation("write", "shared:next", length=1, offset=0), memory) == ENOSPC
    assert fault.decide(freeing, memory) is None
    assert fault.decide(operation("write", "shared:next", length=100, offset=0), memory) is None


def test_a_budget_counts_its_own_tier():
    """Node-local writes don't fill shared storage."""
    fault, memory = Space(budget_bytes=10, tier="shared"), Memory()
    assert fault.decide(operation("write", "local:a", length=1000), memory) is None


def test_smaller_budgets_are_tried_from_the_smallest():
    """Shrinking a budget begins with none at all."""
    assert [fault.budget_bytes for fault in Space(budget_bytes=100).simpler()] == [0, 25, 50]
    assert [fault.error for fault in Space(budget_bytes=0, error="EDQUOT").simpler()] == ["ENOSPC"]
