"""Storage is full: a tier takes a budget of bytes, and no more until some are given back by unlink or truncation.

What it destroys: nothing that was written before.
Survived by: everything must; no guarantee is needed. The target may let the save fail, clearly, but it may not
acknowledge it.
How it heals: a target that deletes what it doesn't need can go on; else at the next attempt.
Evidence: the gate cut a write short, or failed it.

The budget counts what the ranks of one node write in this attempt, on each node by itself: no gate knows what another
has let through. What earlier attempts left behind is neither counted nor given back. Like a real file system, the
write that crosses the budget is performed in part, and the next one fails.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec
from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.census import Point
from chaosckpt.model.fault import Decision, Ends, Errno, Fault, Memory, Short
from chaosckpt.model.operation import Operation, tier_of
from chaosckpt.model.phrasing import describe_tier, plural

USED = ""
"""The counter of all bytes in use; every other counter bears a file's path."""


class Space(Fault, frozen=True, tag="space"):
    """Let each node's ranks use `budget_bytes` of the tier; beyond it, writes fail with ENOSPC or EDQUOT."""

    ends: ClassVar[Ends] = "perhaps"

    budget_bytes: int
    tier: str = "shared"
    error: Literal["ENOSPC", "EDQUOT"] = "ENOSPC"

    def __post_init__(self) -> None:
        if self.budget_bytes < 0:
            raise ValueError(f"budget_bytes = {self.budget_bytes} must not be negative")

    def decide(self, operation: Operation, memory: Memory) -> Decision:
        op, counters = operation.address.op, memory.counters
        if op not in _ACCOUNTED or not operation.address.path.startswith(f"{self.tier}:"):
            return None
        if op == "write":
            return self._write(operation, memory)
        if op == "unlink" or (op == "open_write" and operation.flags & os.O_TRUNC):
            _give_back(counters, operation.raw)
        elif op == "rename" and operation.destination is not None:
            _give_back(counters, operation.destination)
            counters[operation.destination] = counters.pop(operation.raw, 0)
        return None

    def _write(self, operation: Operation, memory: Memory) -> Decision:
        """Bytes over what the file holds already cost nothing: they are in use as it is."""
        counters, length = memory.counters, operation.length or 0
        size = counters.get(operation.raw, 0)
        start = size if operation.offset is None else operation.offset
        more = max(0, start + length - size)
        left = max(0, self.budget_bytes - counters.get(USED, 0))
        taken = min(more, left)
        counters[operation.raw] = size + taken
        counters[USED] = counters.get(USED, 0) + taken
        if taken == more:
            return None
        memory.took_effect = True
        performed = length - (more - taken)
        return Short(performed) if performed > 0 else Errno(int(getattr(errno, self.error)))

    def simpler(self) -> Iterable[Space]:
        smaller = dict.fromkeys(b for b in (0, self.budget_bytes // 4, self.budget_bytes // 2) if b < self.budget_bytes)
        for budget_bytes in smaller:
            yield msgspec.structs.replace(self, budget_bytes=budget_bytes)
        if self.error != "ENOSPC":
            yield msgspec.structs.replace(self, error="ENOSPC")

    def describe(self) -> str:
        budget = plural(self.budget_bytes, "byte")
        return f"{describe_tier(self.tier)} full ({self.error}) once the ranks of a node have filled {budget}"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[Space] | None:
        """Budgets that run out at, or in the midst of, a write of the golden run, where the whole of it is known."""
        if not context.exact or context.until or not context.can_inject(_grows):
            return None
        return context.points(_grows).flatmap(lambda i: _running_out(context, i))


_ACCOUNTED = frozenset({"write", "open_write", "rename", "unlink"})


def _give_back(counters: dict[str, int], raw: str) -> None:
    counters[USED] = counters.get(USED, 0) - counters.pop(raw, 0)


def _grows(point: Point) -> bool:
    return point.address.op == "write" and (point.length or 0) > 0


def used_before(context: FaultContext, i: int) -> int:
    """Bytes that the node of operation `i` has in use on its tier just before it, at least; a renamed file counts as
    gone.

    The golden run doesn't say what a rename replaced, and a budget that is too small runs out early, where one that is
    too large would never.
    """
    node = context.topology.node_of(context.golden.points[i].address.rank)
    tier = tier_of(context.golden.points[i].address.path)
    sizes: dict[str, int] = {}
    incarnations: dict[str, int] = {}
    for point in context.golden.points[:i]:
        address = point.address
        if context.topology.node_of(address.rank) != node or tier_of(address.path) != tier:
            continue
        if incarnations.setdefault(address.path, address.incarnation) < address.incarnation:
            incarnations[address.path] = address.incarnation
            sizes.pop(address.path, None)
        if address.op == "write":
            sizes[address.path] = sizes.get(address.path, 0) + (point.length or 0)
        elif address.op in ("unlink", "rename"):
            sizes.pop(address.path, None)
    return sum(sizes.values())


def _running_out(context: FaultContext, i: int) -> st.SearchStrategy[Space]:
    point, before = context.golden.points[i], used_before(context, i)
    budgets = sorted({before, before + (point.length or 0) // 2})
    return st.builds(
        Space,
        budget_bytes=st.sampled_from(budgets),
        tier=st.just(tier_of(point.address.path)),
        error=st.sampled_from(("ENOSPC", "EDQUOT")),
    )
