"""Modification times are perturbed between two attempts: a copy to another file system, a restored backup, clocks of
several servers.

What it destroys: nothing; no content changes. What takes the newest checkpoint to be the one with the latest time is misled.
Survived by: everything must; no guarantee is needed.
How it heals: new files have true times.
Evidence: the number of files and directories whose times were set in the reverse of their order.
"""

from __future__ import annotations

from typing import ClassVar

from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.fault import Fault, JobControl
from chaosckpt.model.mutation import ReverseTimes
from chaosckpt.model.phrasing import describe_tier


class Mtimes(Fault, frozen=True, tag="mtimes"):
    """Reverse the order of all modification times on a tier (of one node, when node-local), before the attempt starts."""

    between: ClassVar[bool] = True
    weight: ClassVar[float] = 0.5

    tier: str = "shared"
    node: int | None = None

    def prepare(self, job: JobControl) -> str | None:
        return job.mutate(self.tier, self.node, ReverseTimes())

    def describe(self) -> str:
        where = "" if self.node is None else f" of node {self.node}"
        return f"modification times on {describe_tier(self.tier)}{where} put in reverse order before the restart"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[Mtimes] | None:
        if not context.attempt or context.resumes_from is None:
            return None
        places: list[tuple[str, int | None]] = [("shared", None)] if context.touches("shared") else []
        if context.touches("local"):
            places += [("local", node) for node in range(len(context.topology.ranks))]
        return st.sampled_from(places).map(lambda place: cls(*place)) if places else None
