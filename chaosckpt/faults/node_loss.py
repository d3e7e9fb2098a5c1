"""A failure group is lost: its nodes' processes and their node-local storage, for ever.

What it destroys: every process on the nodes of the group, and what their node-local tiers hold. The ranks on other
nodes live on.
Survived by: `node-loss`.
How it heals: a spare node, with empty node-local storage, takes the place of each lost one at the next launch.
Evidence: the trigger was held, all ranks were at rest, the processes are gone, and the storage was dropped.

A spare has to warm up for seconds, so this kind is drawn in one or two trials of a hundred.
"""

from __future__ import annotations

from typing import ClassVar

from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.census import Point
from chaosckpt.model.fault import Ends, JobControl, PointFault, Trigger
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.phrasing import describe_trigger


class NodeLoss(PointFault, frozen=True, tag="node-loss"):
    """Lose the nodes of failure group number `group` once all ranks are at rest."""

    ends: ClassVar[Ends] = "rank"
    drops: ClassVar[str | None] = "local"
    weight: ClassVar[float] = 0.4
    needs: ClassVar[frozenset[Guarantee]] = frozenset({"node-loss"})

    group: int = 0

    def __post_init__(self) -> None:
        if self.group < 0:
            raise ValueError(f"group = {self.group} must not be negative")

    def holds(self) -> tuple[Trigger, ...]:
        return (self.at,)

    def inject(self, job: JobControl) -> None:
        job.await_rest()
        lost = job.failure_groups[self.group]
        for node in lost:
            job.lose_node(node)
        if job.topology.node_of(self.at.address.rank) not in lost:
            job.resume()

    def describe(self) -> str:
        return f"failure group {self.group} lost with its node-local storage {describe_trigger(self.at)}"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[NodeLoss] | None:
        """The group is that of the node on which the trigger's rank runs."""
        group_of = {node: number for number, group in enumerate(context.scenario.topology.groups) for node in group}

        def grouped(point: Point) -> bool:
            return context.topology.node_of(point.address.rank) in group_of

        if not context.can_inject(grouped):
            return None
        return context.triggers(grouped).map(lambda at: cls(at, group_of[context.topology.node_of(at.address.rank)]))
