"""Single faults: every point of the census by itself, in a saving run and in a recovery, walked in a seeded order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from chaosckpt.faults.context import FaultContext
from chaosckpt.faults.cut import Cut
from chaosckpt.model.census import Census
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.strategies.prediction import CensusIndex


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
