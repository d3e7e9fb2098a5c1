"""Shared storage is empty at the restart: a purged scratch file system, the wrong mount.

What it destroys: every checkpoint on the tier `shared`. No process: it is injected between two attempts.
Survived by: no guarantee; a job told to resume must say clearly that nothing is there, unless another tier still has
it.
How it heals: the next saves fill it again, where a fresh start is allowed.
Evidence: the number of files that were deleted; with none there, the fault is not injected.
"""

from __future__ import annotations

from typing import ClassVar

from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.fault import Fault, JobControl
from chaosckpt.model.phrasing import plural


class SharedStorageLoss(Fault, frozen=True, tag="shared-storage-loss"):
    """Delete what the tier `shared` holds, before the attempt starts."""

    between: ClassVar[bool] = True
    drops: ClassVar[str | None] = "shared"
    weight: ClassVar[float] = 0.5

    def prepare(self, job: JobControl) -> str | None:
        files = job.drop_storage("shared")
        return f"{plural(files, 'file')} deleted from shared storage" if files else None

    def describe(self) -> str:
        return "shared storage emptied before the restart"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[SharedStorageLoss] | None:
        if not context.attempt or context.resumes_from is None or not context.touches("shared"):
            return None
        return st.just(cls())
