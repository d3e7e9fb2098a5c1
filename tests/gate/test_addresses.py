"""Tests of logical addresses."""

from __future__ import annotations

import re

from chaosckpt.gate.tree import Addresses
from chaosckpt.model.operation import Address


def test_counts_are_kept_by_role_operation_path_and_incarnation() -> None:
    """Each address is handed out once, counted from 0."""
    addresses = Addresses(1, lambda path: path)
    assert addresses.begin("t:a") == 1
    assert addresses.take("main", "write", "t:a") == Address(1, "main", "write", "t:a", 1, 0)
    assert addresses.take("main", "write", "t:a") == Address(1, "main", "write", "t:a", 1, 1)
    assert addresses.take("thread", "write", "t:a").nth == 0
    assert addresses.take("main", "fsync", "t:a").nth == 0
    assert addresses.begin("t:a") == 2
    assert addresses.take("main", "write", "t:a") == Address(1, "main", "write", "t:a", 2, 0)
    assert addresses.take("main", "write", "t:a", incarnation=1).nth == 2


def test_nonces_are_decoded() -> None:
    """Two temporary names that differ in their random part are one path with two incarnations."""
    addresses = Addresses(0, lambda path: re.sub(r"\.tmp\w+", ".tmp*", path))
    assert addresses.begin("t:.tmpabc") == 1
    assert addresses.begin("t:.tmpxyz") == 2
    assert addresses.take("main", "write", "t:.tmpxyz").path == "t:.tmp*"


def test_a_rename_takes_the_incarnation_along() -> None:
    """Also for what lies below a renamed directory, and never back to an earlier one."""
    addresses = Addresses(0, lambda path: path)
    for _ in range(3):
        addresses.begin("t:tmp/x")
    addresses.moved("t:tmp", "t:step", exchanged=False)
    assert addresses.incarnation("t:step/x") == 3
    addresses.begin("t:new")
    addresses.moved("t:new", "t:step/x", exchanged=False)
    assert addresses.incarnation("t:step/x") == 3
    addresses.moved("t:new", "t:step/x", exchanged=True)
    assert addresses.incarnation("t:new") == 3
