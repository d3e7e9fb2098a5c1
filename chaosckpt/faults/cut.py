"""The whole job is killed at a cut: power, the scheduler or an elastic agent stops every rank at once.

What it destroys: every process. Storage keeps what was performed up to the cut, and nothing after it.
Survived by: `process-crash`. An acknowledged checkpoint must be there afterwards.
How it heals: the job is launched again.
Evidence: every trigger was held, all ranks were at rest with the counts of the cut, and none lived on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec
from hypothesis import strategies as st

from chaosckpt.faults.scene import Scene, torn_writes
from chaosckpt.model.fault import Ends, Fault, JobControl, Trigger
from chaosckpt.model.guarantee import Guarantee


class Cut(Fault, frozen=True, tag="cut"):
    """Kill all ranks together. `at` names at most one operation a rank; ranks not named stand at their reach."""

    ends: ClassVar[Ends] = "job"
    weight: ClassVar[float] = 3.0
    needs: ClassVar[frozenset[Guarantee]] = frozenset({"process-crash"})

    at: tuple[Trigger, ...]

    def __post_init__(self) -> None:
        ranks = [trigger.address.rank for trigger in self.at]
        if not ranks or len(set(ranks)) != len(ranks):
            raise ValueError(f"a cut names one operation a rank, on one rank at least, not ranks {ranks}")

    def holds(self) -> tuple[Trigger, ...]:
        return self.at

    def land(self, job: JobControl) -> None:
        job.await_rest()
        job.kill_job()

    def moved(self, at: Sequence[Trigger]) -> Cut:
        return msgspec.structs.replace(self, at=tuple(at))

    def describe(self) -> str:
        return "kill of the whole job " + " and ".join(map(str, self.at))

    @classmethod
    def strategy(cls, scene: Scene) -> st.SearchStrategy[Cut] | None:
        if not scene.can_strike():
            return None
        return scene.points().flatmap(lambda i: _cuts_through(scene, i))

    @classmethod
    def singles(cls, scene: Scene) -> Iterable[Cut]:
        """Each operation before, after, and torn in the middle."""
        for i in scene.candidates:
            point = scene.map.points[i]
            yield cls((Trigger(point.address, "before"),))
            if torn_writes(point):
                yield cls((Trigger(point.address, "torn", (point.length or 0) // 2),))
            yield cls((Trigger(point.address, "after"),))


def _cuts_through(scene: Scene, i: int) -> st.SearchStrategy[Cut]:
    """Cuts that hold operation `i`: mostly it alone, else with a peer that lags behind its reach."""
    alone = scene.trigger_at(i).map(lambda trigger: Cut((trigger,)))
    partners = [j for j in scene.candidates if j != i and scene.map.consistent((i, j))]
    if not partners:
        return alone
    together = st.sampled_from(partners).flatmap(
        lambda j: st.tuples(scene.trigger_at(i), scene.trigger_at(j)).map(
            lambda pair: Cut(tuple(sorted(pair, key=lambda trigger: trigger.address.rank)))
        )
    )
    return st.sampled_from((alone, alone, alone, together)).flatmap(lambda chosen: chosen)
