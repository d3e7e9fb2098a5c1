"""One operation takes long: a busy file server, a disk that retries.

What it destroys: nothing; it reorders what ranks and threads do.
Survived by: everything must; no guarantee is needed.
How it heals: by itself, after `latency_ms`.
Evidence: the operation was held before it happened, and was let go again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec
from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.fault import JobControl, PointFault, Trigger
from chaosckpt.model.phrasing import describe_trigger


class Latency(PointFault, frozen=True, tag="latency"):
    """Delay one operation by `latency_ms` milliseconds, while the rest of the job goes on as far as it can."""

    weight: ClassVar[float] = 1.0

    latency_ms: int = 10

    def __post_init__(self) -> None:
        if self.latency_ms < 1:
            raise ValueError(f"latency_ms = {self.latency_ms} must be 1 or more")

    def holds(self) -> tuple[Trigger, ...]:
        return (self.at,)

    def inject(self, job: JobControl) -> None:
        job.run_for(self.latency_ms / 1000)
        job.resume()

    def simpler(self) -> Iterable[Latency]:
        shorter = [value for value in (1, 10, 50) if value < self.latency_ms]
        return (msgspec.structs.replace(self, latency_ms=value) for value in shorter)

    def describe(self) -> str:
        return f"delay of {self.latency_ms} ms {describe_trigger(self.at)}"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[Latency] | None:
        if not context.can_inject():
            return None
        before = context.points().map(lambda i: Trigger(context.golden.points[i].address))
        return st.builds(cls, before, st.sampled_from((10, 50, 200)))
