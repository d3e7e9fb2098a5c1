"""The job is told to end by SIGTERM, and killed when its grace is over: a scheduler's time limit, a preempted machine.

What it destroys: every process, after it had the grace to act on the signal.
Survived by: `process-crash`.
How it heals: the job is launched again.
Evidence: the trigger was held, the signal was sent to the ranks named, and none lives after the grace.

What a rank does during its grace runs free, the held operation included: a finding that depends on it carries a
measured k of n.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec
from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.fault import Ends, JobControl, PointFault, Trigger
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.phrasing import describe_trigger


class Sigterm(PointFault, frozen=True, tag="sigterm"):
    """SIGTERM to every rank (or only that of the trigger), at most `grace_ms` milliseconds of life, then SIGKILL to
    all."""

    ends: ClassVar[Ends] = "job"
    lingers: ClassVar[bool] = True
    needs: ClassVar[frozenset[Guarantee]] = frozenset({"process-crash"})

    everyone: bool = True
    grace_ms: int = 2000

    def __post_init__(self) -> None:
        if self.grace_ms < 0:
            raise ValueError(f"grace_ms = {self.grace_ms} must not be negative")

    def holds(self) -> tuple[Trigger, ...]:
        return (self.at,)

    def inject(self, job: JobControl) -> None:
        job.await_rest()
        job.terminate(range(job.topology.world_size) if self.everyone else (self.at.address.rank,))
        job.resume()
        job.run_for(self.grace_ms / 1000)
        job.kill_job()

    def simpler(self) -> Iterable[Sigterm]:
        if not self.everyone:
            yield msgspec.structs.replace(self, everyone=True)

    def describe(self) -> str:
        who = "every rank" if self.everyone else f"rank {self.at.address.rank}"
        return f"SIGTERM to {who} {describe_trigger(self.at)}, and SIGKILL to all after {self.grace_ms} ms of grace"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[Sigterm] | None:
        if not context.can_inject():
            return None
        return st.builds(cls, context.triggers(torn=False), st.booleans(), st.sampled_from((500, 2000)))
