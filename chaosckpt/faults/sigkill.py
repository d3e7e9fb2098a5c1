"""One rank is killed by SIGKILL; its peers live on: the out-of-memory killer, a crash in native code.

What it destroys: one rank's process tree. Its peers run their error paths (emergency saves, clean-up, a commit
without the dead rank's shard) until they exit by themselves or the harness's grace ends; that is where many real
faults hide.
Survived by: `process-crash`.
How it heals: the job is launched again.
Evidence: the trigger was held, all ranks were at rest, and the process is gone by signal 9.
"""

from __future__ import annotations

from typing import ClassVar

from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.fault import Ends, JobControl, PointFault, Trigger
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.phrasing import describe_trigger


class Sigkill(PointFault, frozen=True, tag="sigkill"):
    """Kill the rank of the trigger once its peers are at rest, so that their position is exact; they live on."""

    ends: ClassVar[Ends] = "rank"
    weight: ClassVar[float] = 3.0
    needs: ClassVar[frozenset[Guarantee]] = frozenset({"process-crash"})

    def holds(self) -> tuple[Trigger, ...]:
        return (self.at,)

    def inject(self, job: JobControl) -> None:
        job.await_rest()
        job.kill_rank(self.at.address.rank)

    def describe(self) -> str:
        return f"rank {self.at.address.rank} killed by SIGKILL {describe_trigger(self.at)}"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[Sigkill] | None:
        if not context.can_inject():
            return None
        return context.triggers().map(cls)
