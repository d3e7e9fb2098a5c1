"""A thread that is slower than everything else, without a clock."""

from __future__ import annotations

from typing import Any

from chaosckpt.faults.latency import Latency
from chaosckpt.model.fault import JobControl, PointFault, Trigger


class Lag(PointFault, frozen=True, tag="lag"):
    """Hold one operation until the job can't go on without it."""

    def holds(self) -> tuple[Trigger, ...]:
        return (self.at,)

    def inject(self, job: JobControl) -> None:
        job.await_rest()
        job.resume()

    def to_builtins(self) -> Any:
        """A node only has to know which operation is held, and no plugin tells it of this kind: one that it knows will do."""
        return Latency(self.at).to_builtins()
