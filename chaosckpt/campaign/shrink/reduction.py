"""The steps of shrinking: which simpler schedules are tried, and in which order.

Each step is a generator that yields candidates, is sent the first of them that still fails (or None), and returns the
simplest schedule that it has reached.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from chaosckpt.campaign.shrink.earliest import Step, moved_earlier
from chaosckpt.campaign.shrink.retarget import replaced, retargeted, without_attempt
from chaosckpt.faults.cut import Cut
from chaosckpt.model.fault import Fault
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.strategies.prediction import CensusIndex


def attempts_dropped(census_index: CensusIndex, best: Schedule) -> Step:
    """One attempt alone, else the schedule without one of its attempts, again and again."""
    if len(best.attempts) > 2:
        found = yield usable(census_index, best, (Schedule((plan,)) for plan in best.attempts))
        best = found or best
    while len(best.attempts) > 1:
        numbers = reversed(range(len(best.attempts)))
        without = itertools.chain.from_iterable(without_attempt(census_index, best, number) for number in numbers)
        found = yield usable(census_index, best, without)
        if found is None:
            return best
        best = found
    return best


def faults_dropped(census_index: CensusIndex, best: Schedule) -> Step:
    """Delta debugging over the faults: afterwards none can be left out by itself."""
    parts = 2
    while (count := len(best.faults)) > 1:
        parts = min(parts, count)
        chunks = [range(count * i // parts, count * (i + 1) // parts) for i in range(parts)]
        kept = [set(chunk) for chunk in chunks] if parts < count else []
        kept += [set(range(count)) - set(chunk) for chunk in reversed(chunks)]
        found = yield usable(census_index, best, (_only(best, numbers) for numbers in kept))
        if found is not None:
            best, parts = found, 2
        elif parts == count:
            break
        else:
            parts = min(count, parts * 2)
    return best


def faults_simplified(census_index: CensusIndex, best: Schedule) -> Step:
    """Every fault by itself, in order: a plainer kind, fewer triggers, smaller fields, an earlier operation."""
    for attempt in range(len(best.attempts)):
        for index in range(len(best.attempts[attempt].faults)):
            found = yield usable(census_index, best, _plainer(best, attempt, index))
            best = found or best
            best = yield from _smaller(census_index, best, attempt, index)
            best = yield from moved_earlier(census_index, best, attempt, index)
    return best


def usable(census_index: CensusIndex, best: Schedule, candidates: Iterable[Schedule]) -> list[Schedule]:
    """The candidates without empty attempts, their later triggers where they belong now; each once, and never
    `best`."""
    found: dict[str, Schedule] = {}
    for candidate in candidates:
        aimed = retargeted(census_index, best, _tidy(candidate))
        if aimed is not None and aimed.faults and aimed != best:
            found.setdefault(aimed.digest, aimed)
    return list(found.values())


def _tidy(schedule: Schedule) -> Schedule:
    return Schedule(tuple(plan for plan in schedule.attempts if plan.faults))


def _only(schedule: Schedule, numbers: set[int]) -> Schedule:
    """The schedule with these of its faults, counted through all attempts."""
    plans, number = [], 0
    for plan in schedule.attempts:
        faults = plan.faults
        plans.append(AttemptPlan(tuple(fault for i, fault in enumerate(faults, number) if i in numbers)))
        number += len(faults)
    return Schedule(tuple(plans))


def _plainer(best: Schedule, attempt: int, index: int) -> list[Schedule]:
    """A whole-job kill in place of anything else that ends an attempt: it replays exactly. And one trigger for
    several."""
    fault = best.attempts[attempt].faults[index]
    triggers = fault.triggers()
    others: list[Fault] = []
    if fault.ends != "nothing" and triggers and not isinstance(fault, Cut):
        others.append(Cut(triggers[:1]))
    if len(triggers) > 1:
        others += [fault.moved([trigger]) for trigger in sorted(triggers, key=lambda t: t.address.rank)]
    return [replaced(best, attempt, index, other) for other in others]


def _smaller(census_index: CensusIndex, best: Schedule, attempt: int, index: int) -> Step:
    """Smaller values of the fault's own fields, as long as there are any."""
    while True:
        fault = best.attempts[attempt].faults[index]
        found = yield usable(census_index, best, (replaced(best, attempt, index, other) for other in fault.simpler()))
        if found is None:
            return best
        best = found
