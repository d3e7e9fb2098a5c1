"""A write takes fewer bytes than it was given and says so: what POSIX permits, and what network file systems do.

What it destroys: nothing, when the writer looks at the result and writes the rest; a writer that doesn't has a
truncated file.
Survived by: everything must; no guarantee is needed.
How it heals: the writer's next call writes on.
Evidence: the gate answered the write with a smaller count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec
from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext, torn_lengths, torn_writes
from chaosckpt.model.fault import Decision, Memory, PointFault, Short, Trigger
from chaosckpt.model.operation import Operation
from chaosckpt.model.phrasing import describe_operation, plural


class ShortWrite(PointFault, frozen=True, tag="short-write"):
    """Perform the first `length` bytes of one write only (at most all but one), and return that number."""

    weight: ClassVar[float] = 0.5

    length: int = 1

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ValueError(f"length = {self.length} must be 1 or more: a write of 0 bytes means something else")

    def decide(self, operation: Operation, memory: Memory) -> Decision:
        if memory.took_effect or operation.address != self.at.address:
            return None
        if operation.length is None or operation.length < 2:
            return None
        memory.took_effect = True
        return Short(min(self.length, operation.length - 1))

    def accepts(self, op: str) -> bool:
        return op == "write"

    def simpler(self) -> Iterable[ShortWrite]:
        if self.length > 1:
            yield msgspec.structs.replace(self, length=1)

    def describe(self) -> str:
        return f"short write: only {plural(self.length, 'byte')} of {describe_operation(self.at.address)} written"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[ShortWrite] | None:
        if not context.can_inject(torn_writes):
            return None
        return context.points(torn_writes).flatmap(lambda i: _shortened(context, i))


def _shortened(context: FaultContext, i: int) -> st.SearchStrategy[ShortWrite]:
    point = context.golden.points[i]
    return st.sampled_from(torn_lengths(point.length or 2)).map(
        lambda length: ShortWrite(Trigger(point.address), length)
    )
