"""The pure function from a seed and an index to the schedule of the trial `SEED:INDEX`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from hypothesis import given, settings
from hypothesis.configuration import set_hypothesis_home_dir

from chaosckpt.faults.context import FaultContext
from chaosckpt.faults.cut import Cut
from chaosckpt.model.census import Census
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.strategies.prediction import CensusIndex
from chaosckpt.strategies.schedules import DrawSpace, Kinds, from_space


def single_schedules(
    scenario: Scenario, census_index: CensusIndex, kinds: Mapping[str, type[Fault]]
) -> tuple[Schedule, ...]:
    """One schedule a point, in a fixed order.

    A point of a recovery needs something to recover: its schedule kills the job right after the commit of the step
    that this recovery resumes from (where whole-job kills are drawn at all), and injects in the second attempt.
    """
    first = FaultContext(scenario=scenario, census=census_index.census, golden=census_index.main)
    found = [Schedule((AttemptPlan((fault,)),)) for fault in _all_singles(first, kinds)]
    for opening, recovery in recoveries(scenario, census_index, kinds):
        found += [Schedule((opening, AttemptPlan((fault,)))) for fault in _all_singles(recovery, kinds)]
    return tuple(dict.fromkeys(found))


def recoveries(
    scenario: Scenario, census_index: CensusIndex, kinds: Mapping[str, type[Fault]]
) -> Iterator[tuple[AttemptPlan, FaultContext]]:
    """For each saved step: the plan of a first attempt after which it is resumed from, and the context of that
    recovery."""
    if "cut" not in kinds or scenario.faults.max_attempts < 2:
        return
    main = census_index.main
    # Where saves overlap, the one after a commit may be complete as well by the time all are at rest: but not after the last.
    overlap = scenario.workload.outstanding > 1
    for commit in list(main.commits.values())[-1 if overlap else 0 :]:
        opening = AttemptPlan((Cut((Trigger(main.points[commit].address, "after"),)),))
        predicted = census_index.following(census_index.start(), opening)
        if not predicted.exact:
            continue
        yield (
            opening,
            FaultContext(
                scenario=scenario,
                census=census_index.census,
                golden=predicted.golden,
                attempt=1,
                history=(opening,),
                recovery_only=True,
            ),
        )


def _all_singles(context: FaultContext, kinds: Mapping[str, type[Fault]]) -> Iterator[Fault]:
    for name in sorted(kinds):
        yield from kinds[name].singles(context)


def baring(census: Census) -> frozenset[Schedule]:
    """Schedules that kill the job just where a fault-free run leaves too little to recover."""
    return frozenset(Schedule((AttemptPlan((Cut((Trigger(point.address, "after"),)),)),)) for point in census.gaps)


def permutation(seed: int, count: int) -> list[int]:
    """The numbers below `count` in an order that depends on the seed alone, on every machine and in every version of
    Python."""
    return sorted(range(count), key=lambda i: hashlib.blake2b(f"chaosckpt/1/{seed}/single/{i}".encode()).digest())


STRATEGY_VERSION = 2
"""Goes up whenever the same seed and index begin to give another schedule."""
BUFFER_BYTES = 8192
TRIES = 1000


def draw(seed: int, index: int, scenario: Scenario, census: Census, kinds: Kinds) -> Schedule:
    """The schedule of trial `seed:index`; it depends on the arguments alone, whatever the machine, process or order
    of calls.

    Index 0 is a control without faults. Odd indices walk through the single faults of the census in an order given by
    the seed; even ones, and odd ones once the single faults are used up, are drawn from `schedules`.
    """
    return _search(scenario, census, kinds).schedule(seed, index)


def is_single(seed: int, index: int, scenario: Scenario, census: Census, kinds: Kinds) -> bool:
    """Whether this trial is one of the walk through single faults."""
    return _search(scenario, census, kinds).single(seed, index) is not None


@dataclass(frozen=True, eq=False)
class _Search:
    """What drawing needs again and again for one scenario, census and set of kinds."""

    scenario: Scenario
    census: Census
    kinds: Kinds

    @cached_property
    def space(self) -> DrawSpace:
        return DrawSpace.of(self.scenario, self.census, self.kinds)

    @cached_property
    def singles(self) -> tuple[Schedule, ...]:
        return single_schedules(self.scenario, self.space.census_index, self.space.kinds)

    @cached_property
    def orders(self) -> dict[int, list[int]]:
        """The order of the single faults for each seed asked for."""
        return {}

    def single(self, seed: int, index: int) -> Schedule | None:
        number, odd = divmod(index, 2)
        if not odd or number >= len(self.singles):
            return None
        if seed not in self.orders:
            order = permutation(seed, len(self.singles))
            first = baring(self.census)
            # What recovery on the fault-free run's own storage has shown already is confirmed by a real death first.
            self.orders[seed] = sorted(order, key=lambda i: self.singles[i] not in first)
        return self.singles[self.orders[seed][number]]

    def schedule(self, seed: int, index: int) -> Schedule:
        if index == 0 or not self.space.kinds:
            return Schedule()
        return self.single(seed, index) or self.drawn(seed, index)

    def drawn(self, seed: int, index: int) -> Schedule:
        for k in range(TRIES):
            found = self._fuzzed(hashlib.shake_256(f"chaosckpt/1/{seed}/{index}/{k}".encode()).digest(BUFFER_BYTES))
            if found is not None and found.faults:
                return found
        return Schedule()

    @cached_property
    def _fuzzed(self) -> Callable[[bytes], Schedule | None]:
        """Bytes to a schedule, or to None where the bytes draw nothing."""
        box: list[Schedule] = []

        @settings(database=None, deadline=None)
        @given(from_space(self.space))
        def one(schedule: Schedule) -> None:
            box[:] = [schedule]

        fuzz = one.hypothesis.fuzz_one_input  # type: ignore[attr-defined]

        def run(buffer: bytes) -> Schedule | None:
            box.clear()
            with _no_directory():
                fuzz(buffer)
            return box[0] if box else None

        return run


@contextmanager
def _no_directory() -> Iterator[None]:
    """Hypothesis keeps a cache in the current directory, which is the user's; give it a place that can't be."""
    if "HYPOTHESIS_STORAGE_DIRECTORY" in os.environ:
        yield
        return
    set_hypothesis_home_dir(os.path.join(os.devnull, "hypothesis"))
    try:
        yield
    finally:
        set_hypothesis_home_dir(None)


_RECENT: list[_Search] = []
"""The last few searches, newest last, found again by identity: a campaign draws from one census thousands of times."""


def _search(scenario: Scenario, census: Census, kinds: Kinds) -> _Search:
    for known in _RECENT:
        if known.scenario is scenario and known.census is census and dict(known.kinds) == dict(kinds):
            return known
    fresh = _Search(scenario, census, dict(kinds))
    _RECENT.append(fresh)
    del _RECENT[:-4]
    return fresh
