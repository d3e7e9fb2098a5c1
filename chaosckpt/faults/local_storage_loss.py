"""Node-local storage is empty at the restart: a fresh allocation, a reimaged node, a cleaned scratch disk.

What it destroys: what the node-local tier of one node holds. No process: it is injected between two attempts.
Survived by: `local-storage-loss`.
How it heals: the next saves fill it again.
Evidence: the number of files that were deleted; with none there, the fault is not injected.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.fault import Fault, JobControl
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.phrasing import plural


class LocalStorageLoss(Fault, frozen=True, tag="local-storage-loss"):
    """Delete what node `node` holds on the tier `local`, before the attempt starts."""

    between: ClassVar[bool] = True
    drops: ClassVar[str | None] = "local"
    needs: ClassVar[frozenset[Guarantee]] = frozenset({"local-storage-loss"})

    node: int = 0

    def __post_init__(self) -> None:
        if self.node < 0:
            raise ValueError(f"node = {self.node} must not be negative")

    def prepare(self, job: JobControl) -> str | None:
        files = job.drop_storage("local", self.node)
        return f"{plural(files, 'file')} deleted from the node-local storage of node {self.node}" if files else None

    def simpler(self) -> list[LocalStorageLoss]:
        return [msgspec.structs.replace(self, node=0)] if self.node else []

    def describe(self) -> str:
        return f"node-local storage of node {self.node} emptied before the restart"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[LocalStorageLoss] | None:
        if not context.attempt or context.resumes_from is None or not context.touches("local"):
            return None
        return st.integers(0, len(context.topology.ranks) - 1).map(cls)
