"""Triggers and operations for tests of single faults."""

from __future__ import annotations

from chaosckpt.model.fault import Trigger
from chaosckpt.model.operation import Address, Operation, When


def address(op: str = "write", path: str = "shared:step_4/__1_0.distcp", rank: int = 1, nth: int = 0) -> Address:
    return Address(rank, "main", op, path, 1, nth)


def trigger(op: str = "write", rank: int = 1, when: When = "before", torn_bytes: int = 0, nth: int = 0) -> Trigger:
    return Trigger(address(op, rank=rank, nth=nth), when, torn_bytes)


def operation(op: str = "write", path: str = "shared:step_4/__1_0.distcp", **fields) -> Operation:
    nth = fields.pop("nth", 0)
    return Operation(address=address(op, path, nth=nth), sequence=0, raw=path, **fields)
