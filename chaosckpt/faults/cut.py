"""The whole job is killed at a cut: power, the scheduler or an elastic agent stops every rank at once.

What it destroys: every process. Storage keeps what was performed up to the cut, and nothing after it.
Survived by: `process-crash`. An acknowledged checkpoint must be there afterwards.
How it heals: the job is launched again.
A job whose saver works in a thread or a process of its own is cut through these as well: the training thread's
coordinate is the step that it is about to train, while its saver is held at an operation of an earlier save.
Evidence: every trigger was held, all ranks were at rest with the counts of the cut, and none lived on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec
from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext, torn_writes
from chaosckpt.model.fault import Ends, Fault, JobControl, Trigger
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.operation import step_address
from chaosckpt.model.phrasing import describe_trigger


class Cut(Fault, frozen=True, tag="cut"):
    """Kill all ranks together. `at` names at most one operation a rank; ranks not named stand at their reach.

    `steps` are (rank, step): the training thread of that rank stands before that step; those not named go as far as they can.
    """

    ends: ClassVar[Ends] = "job"
    weight: ClassVar[float] = 6.0
    needs: ClassVar[frozenset[Guarantee]] = frozenset({"process-crash"})

    at: tuple[Trigger, ...]
    steps: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        training = [rank for rank, _ in self.steps]
        if len(set(training)) != len(training):
            raise ValueError(f"a cut names one training step a rank, not ranks {training}")
        ranks = [trigger.address.rank for trigger in self.at]
        if not ranks or len(set(ranks)) != len(ranks):
            raise ValueError(f"a cut names one operation a rank, on one rank at least, not ranks {ranks}")

    def holds(self) -> tuple[Trigger, ...]:
        return self.at + tuple(Trigger(step_address(rank, step)) for rank, step in self.steps)

    def triggers(self) -> tuple[Trigger, ...]:
        return self.at

    def inject(self, job: JobControl) -> None:
        job.await_rest()
        job.kill_job()

    def moved(self, at: Sequence[Trigger]) -> Cut:
        return msgspec.structs.replace(self, at=tuple(at))

    def describe(self) -> str:
        training = "".join(f", rank {rank} about to train step {step}" for rank, step in self.steps)
        return "whole job killed " + " and ".join(map(describe_trigger, self.at)) + training

    def simpler(self) -> Iterable[Cut]:
        """Without steps, with fewer of them, then with earlier ones: ranks train together, so all move together."""
        kept = [tuple(other for other in self.steps if other != step) for step in self.steps]
        if self.steps and min(step for _, step in self.steps) > 1:
            kept.append(tuple((rank, step - 1) for rank, step in self.steps))
        candidates = dict.fromkeys([(), *kept] if self.steps else [])
        return (msgspec.structs.replace(self, steps=steps) for steps in candidates)

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[Cut] | None:
        if not context.can_inject():
            return None
        return (
            context.points().flatmap(lambda i: _cuts_through(context, i)).flatmap(lambda cut: _with_steps(context, cut))
        )

    @classmethod
    def singles(cls, context: FaultContext) -> Iterable[Cut]:
        """Each operation before, after, and torn in the middle."""
        for i in context.candidates:
            point = context.golden.points[i]
            yield cls((Trigger(point.address, "before"),))
            if torn_writes(point):
                yield cls((Trigger(point.address, "torn", (point.length or 0) // 2),))
            yield cls((Trigger(point.address, "after"),))


def _cuts_through(context: FaultContext, i: int) -> st.SearchStrategy[Cut]:
    """Cuts that hold operation `i`: mostly it alone, else with a peer that lags behind its reach."""
    alone = context.trigger_at(i).map(lambda trigger: Cut((trigger,)))
    partners = context.partners(i)
    if not partners:
        return alone
    together = st.sampled_from(partners).flatmap(
        lambda j: st.tuples(context.trigger_at(i), context.trigger_at(j)).map(
            lambda pair: Cut(tuple(sorted(pair, key=lambda trigger: trigger.address.rank)))
        )
    )
    return st.sampled_from((alone, alone, alone, together)).flatmap(lambda chosen: chosen)


def _with_steps(context: FaultContext, cut: Cut) -> st.SearchStrategy[Cut]:
    """In half of the cuts through savers that work while their ranks train, a step for one rank, or for every rank.

    Ranks train together, so the step is the same for all of them; beyond the next save they wait for one another.
    """
    indices = [i for trigger in cut.at if (i := context.golden.index(trigger.address)) is not None]
    points = [context.golden.points[i] for i in indices]
    saves = [point.label.step for point in points if point.address.role != "main" and point.label.step is not None]
    if not indices or len(saves) != len(cut.at):
        return st.just(cut)
    following = min((step for step in context.golden.steps if step > max(saves)), default=0)
    last = min(following, *(context.golden.training(i) for i in indices))
    if last <= max(saves):
        return st.just(cut)
    own = tuple(trigger.address.rank for trigger in cut.at)
    ranks = st.sampled_from([own[:1], own, tuple(range(context.topology.world_size))])
    steps = st.integers(max(saves) + 1, last)
    held = st.builds(lambda who, step: tuple((rank, step) for rank in sorted(who)), ranks, steps)
    return st.one_of(st.just(()), held).map(lambda chosen: msgspec.structs.replace(cut, steps=chosen))
