"""The process that saves for a rank is killed by SIGKILL; the rank itself lives on: the out-of-memory killer takes the
child with the copy of the state.

What it destroys: the save under way, on one rank. The rank has to notice: it may fail, or train on and save again, but
it may not acknowledge what its child didn't finish.
Survived by: `process-crash`.
How it heals: by the target itself, or the job is launched again.
Evidence: the trigger, in a child process of the rank, was held, all ranks were at rest, and that process was killed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.census import Point
from chaosckpt.model.fault import Ends, JobControl, PointFault, Trigger
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.phrasing import describe_trigger


class SaverKill(PointFault, frozen=True, tag="saver-kill"):
    """Kill the child process that performs the operation of the trigger, once all are at rest."""

    ends: ClassVar[Ends] = "perhaps"
    weight: ClassVar[float] = 2.0
    needs: ClassVar[frozenset[Guarantee]] = frozenset({"process-crash"})

    def __post_init__(self) -> None:
        if self.at.address.role != "child":
            raise ValueError(f"{self.at} is no operation of a child process, which this fault kills")

    def holds(self) -> tuple[Trigger, ...]:
        return (self.at,)

    def inject(self, job: JobControl) -> None:
        job.await_rest()
        job.kill_process()

    def moved(self, at: Sequence[Trigger]) -> SaverKill:
        return SaverKill(at[0]) if at[0].address.role == "child" else self

    def describe(self) -> str:
        return f"saver process of rank {self.at.address.rank} killed by SIGKILL {describe_trigger(self.at)}"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[SaverKill] | None:
        if not context.can_inject(_in_a_child):
            return None
        return context.triggers(_in_a_child).map(cls)


def _in_a_child(point: Point) -> bool:
    return point.address.role == "child"
