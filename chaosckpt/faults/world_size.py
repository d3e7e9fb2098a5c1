"""The job starts again with another number of ranks: up, down, or back.

What it destroys: nothing; what was saved by one number of ranks is loaded by another.
Survived by: `world-size-change`.
How it heals: there is nothing to heal. The new topology stays until another fault of this kind.
Evidence: the ranks that were launched.
"""

from __future__ import annotations

from typing import ClassVar

from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.fault import Fault, JobControl
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.phrasing import plural
from chaosckpt.model.topology import Topology


class WorldSize(Fault, frozen=True, tag="world-size"):
    """Start this attempt, and those after it, in the topology `to`."""

    between: ClassVar[bool] = True
    weight: ClassVar[float] = 2.0
    needs: ClassVar[frozenset[Guarantee]] = frozenset({"world-size-change"})

    to: Topology

    def topology(self, current: Topology) -> Topology:
        return self.to

    def prepare(self, job: JobControl) -> str | None:
        return f"the job starts as {self.to}, {plural(self.to.world_size, 'rank')}"

    def describe(self) -> str:
        return f"job restarted as {self.to} ({plural(self.to.world_size, 'rank')})"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[WorldSize] | None:
        """Only to topologies that the census has a golden run of, so that faults after it know their addresses."""
        known = set(context.census.topologies)
        others = [to for to in context.scenario.topology.topologies if to != context.topology and to in known]
        if not context.attempt or not others:
            return None
        return st.sampled_from(others).map(cls)
