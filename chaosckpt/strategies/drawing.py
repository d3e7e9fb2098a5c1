"""The pure function from a seed and an index to the schedule of the trial `SEED:INDEX`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir

from chaosckpt.faults.context import FaultContext
from chaosckpt.faults.cut import Cut
from chaosckpt.model.census import Census
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.strategies.prediction import CensusIndex
from chaosckpt.strategies.schedules import DrawSpace, Kinds, from_space
from chaosckpt.strategies.strata import Opened, Rotation, Strata, strata


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


STRATEGY_VERSION = 3
"""Goes up whenever the same seed and index begin to give another schedule."""
BUFFER_BYTES = 8192
TRIES = 200


def draw(seed: int, index: int, scenario: Scenario, census: Census, kinds: Kinds) -> Schedule:
    """The schedule of trial `seed:index`; it depends on the arguments alone, whatever the machine, process or order
    of calls.

    Index 0 is a control without faults. Odd indices have a single fault each: every other one of them walks through the cuts of the
    census in an order given by the seed, the rest (and all, once the cuts are used up) through the strata of the other kinds. Even
    indices are drawn from `schedules`, each with a fault of the kind whose turn it is.
    """
    return _search(scenario, census, kinds).schedule(seed, index)


def is_single(seed: int, index: int, scenario: Scenario, census: Census, kinds: Kinds) -> bool:
    """Whether this trial has a single fault, beside the kill that a fault in a recovery needs before it."""
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
    def attempts(self) -> tuple[Opened, ...]:
        """A first attempt, and the recoveries after it."""
        first = FaultContext(scenario=self.scenario, census=self.census, golden=self.space.census_index.main)
        return (None, first), *recoveries(self.scenario, self.space.census_index, self.space.kinds)

    @cached_property
    def strata(self) -> dict[str, Strata]:
        """Those of every kind that is not walked through and can be injected."""
        walked = {fault.kind for schedule in self.singles for fault in schedule.attempts[-1].faults}
        point_kinds = {name: kind for name, kind in self.space.kinds.items() if not kind.between and name not in walked}
        found = {name: strata(kind, self.attempts) for name, kind in point_kinds.items()}
        return {name: rows for name, rows in found.items() if rows.saves or rows.recoveries}

    @cached_property
    def offered(self) -> tuple[str, ...]:
        """The kinds that can be injected somewhere in this scenario."""
        contexts = [context for _, context in self.attempts]
        return tuple(
            name
            for name, kind in self.space.kinds.items()
            if any(kind.strategy(context) is not None for context in contexts)
        )

    @cached_property
    def orders(self) -> dict[int, list[int]]:
        """The order of the single faults for each seed asked for."""
        return {}

    @cached_property
    def rotations(self) -> dict[tuple[int, tuple[str, ...]], Rotation]:
        """For each seed asked for, the kinds in turn."""
        return {}

    def rotation(self, seed: int, names: tuple[str, ...]) -> Rotation:
        """These kinds in turn: oftener one that rarely comes when it isn't its turn."""
        if (seed, names) not in self.rotations:
            parts = {name: self.space.parts(name) * _alone(self.space.kinds[name]) for name in names}
            self.rotations[seed, names] = Rotation(parts, seed)
        return self.rotations[seed, names]

    def single(self, seed: int, index: int) -> Schedule | None:
        """The schedule of a trial with a single fault; None where it has several."""
        number, odd = divmod(index, 2)
        if not odd:
            return None
        turn, aside = divmod(number, 2)
        if not aside and turn < len(self.singles):
            return self.walked(seed, turn)
        # Once the walk is over its turns are the strata's, too.
        number = turn if number < 2 * len(self.singles) else number - len(self.singles)
        return self.stratum(seed, index, number)

    def walked(self, seed: int, turn: int) -> Schedule:
        """The single fault of this turn of the walk through the census."""
        if seed not in self.orders:
            order = permutation(seed, len(self.singles))
            first = baring(self.census)
            # What recovery on the fault-free run's own storage has shown already is confirmed by a real death first.
            self.orders[seed] = sorted(order, key=lambda i: self.singles[i] not in first)
        return self.singles[self.orders[seed][turn]]

    def stratum(self, seed: int, index: int, turn: int) -> Schedule | None:
        """A fault from the stratum of this turn."""
        rotation = self.rotation(seed, tuple(self.strata))
        kind = rotation.at(turn)
        if kind is None:
            return None
        stratum = self.strata[kind].at(rotation.before(turn), seed)
        fault = None if stratum is None else self.fuzzed(stratum, lambda: stratum.strategy, seed, index)
        if stratum is None or fault is None:
            return None
        return Schedule((*filter(None, [stratum.opening]), AttemptPlan((fault,))))

    def schedule(self, seed: int, index: int) -> Schedule:
        if index == 0 or not self.space.kinds:
            return Schedule()
        return self.single(seed, index) or self.drawn(seed, index)

    def drawn(self, seed: int, index: int) -> Schedule:
        """A schedule of several faults, one of them of the kind whose turn it is."""
        focus = self.rotation(seed, self.offered).at(index // 2)
        openings = [opening for opening, _ in self.attempts if opening is not None]
        for wanted in (focus, None):
            rare = wanted is not None and _alone(self.space.kinds[wanted]) > 3
            strategy = partial(from_space, self.space, wanted, openings if rare else ())
            found: Schedule | None = self.fuzzed(wanted, strategy, seed, index)
            if found is not None:
                return found
        return Schedule()

    @cached_property
    def fuzzers(self) -> dict[object, Callable[[bytes], Any]]:
        """What turns bytes into a value of a strategy, or None, by the strategy's key: it is costly to make."""
        return {}

    def fuzzed(self, key: object, strategy: Callable[[], st.SearchStrategy[Any]], seed: int, index: int) -> Any:
        """What the first bytes of this trial draw that draw anything; None where none of TRIES does."""
        if key not in self.fuzzers:
            self.fuzzers[key] = _fuzzer(strategy())
        with _no_directory():
            for k in range(TRIES):
                digest = hashlib.shake_256(f"chaosckpt/1/{seed}/{index}/{k}".encode()).digest(BUFFER_BYTES)
                if (found := self.fuzzers[key](digest)) is not None:
                    return found
        return None


def _fuzzer(strategy: st.SearchStrategy[Any]) -> Callable[[bytes], Any]:
    box: list[Any] = []

    @settings(database=None, deadline=None)
    @given(strategy)
    def one(value: object) -> None:
        box[:] = [value]

    fuzz = one.hypothesis.fuzz_one_input  # type: ignore[attr-defined]

    def run(buffer: bytes) -> Any:
        box.clear()
        fuzz(buffer)
        return box[0] if box else None

    return run


def _alone(kind: type[Fault]) -> int:
    """How much oftener a kind has its turn, because others bring it along less: kills open the way to recoveries, and what ends
    nothing fits beside anything, but at most one fault of the rest comes in an attempt."""
    return 6 if kind.between else 4 if kind.ends == "perhaps" else 3 if kind.ends == "rank" else 2


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
