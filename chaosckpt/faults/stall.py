"""One operation of one rank blocks for long: a file server that hangs, a lock that is never granted, a dead mount that comes back.

What it destroys: nothing by itself. The rank stands in one system call while all else goes on: its other threads, and its peers until
they wait for it and their own deadlines end. Then the operation is performed, in a job that may have given the rank up.
Survived by: everything must; no guarantee is needed. The save may fail, clearly; what was acknowledged stays.
How it heals: the operation is performed when every other rank has ended, or when their grace is over.
Evidence: the operation was held before it happened, and was let go again.

How far the others get runs free, so a finding that depends on it carries a measured k of n.
"""

from __future__ import annotations

from typing import ClassVar

from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.census import Point
from chaosckpt.model.fault import Ends, JobControl, PointFault, Trigger
from chaosckpt.model.phrasing import describe_operation


class Stall(PointFault, frozen=True, tag="stall"):
    """Hold one operation beyond the job's own deadlines, while the rest of the job goes on as far as it can."""

    ends: ClassVar[Ends] = "perhaps"
    lingers: ClassVar[bool] = True
    weight: ClassVar[float] = 0.3

    def holds(self) -> tuple[Trigger, ...]:
        return (self.at,)

    def inject(self, job: JobControl) -> None:
        job.await_peers(self.at.address.rank)
        job.resume()

    def describe(self) -> str:
        return f"{describe_operation(self.at.address)} blocked until the other ranks had given up"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[Stall] | None:
        """Where anything goes on meanwhile: in a job of several ranks, or on a thread beside the one that trains."""
        alone = context.topology.world_size == 1

        def accepts(point: Point) -> bool:
            return not alone or point.address.role != "main"

        if not context.can_inject(accepts):
            return None
        return context.points(accepts).map(lambda i: cls(Trigger(context.golden.points[i].address)))
