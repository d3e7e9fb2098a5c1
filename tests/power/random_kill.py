"""The usual loop: the job is killed at a random time, started again, and looked at. What exact faults are compared with."""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar

from chaosckpt.faults.latency import Latency
from chaosckpt.model.census import Census
from chaosckpt.model.fault import Ends, JobControl, PointFault, Trigger
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.schedule import AttemptPlan, Schedule


class RandomKill(PointFault, frozen=True, tag="random-kill"):
    """kill -9 of the whole job, `seconds` after its first operation."""

    ends: ClassVar[Ends] = "job"
    lingers: ClassVar[bool] = True
    needs: ClassVar[frozenset[Guarantee]] = frozenset({"process-crash"})

    seconds: float

    def holds(self) -> tuple[Trigger, ...]:
        return (self.at,)

    def inject(self, job: JobControl) -> None:
        job.resume()
        job.run_for(self.seconds)
        job.kill_job()

    def to_builtins(self) -> Any:
        """A node only has to know which operation is held, and no plugin tells it of this kind: one that it knows will do."""
        return Latency(self.at).to_builtins()


def random_kill(seed: int, index: int, census: Census) -> Schedule:
    """The schedule of one round of the loop. The time is uniform over what the golden run took."""
    digest = hashlib.blake2b(f"random-kill/{seed}/{index}".encode(), digest_size=8).digest()
    seconds = census.main.duration_seconds * int.from_bytes(digest) / 2**64
    first = Trigger(census.main.points[0].address)
    return Schedule((AttemptPlan((RandomKill(first, seconds),)),))
