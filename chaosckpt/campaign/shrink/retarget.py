"""Where a fault of one attempt belongs when an earlier attempt, or its own trigger, is moved: the same place in
another save."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.finding import file_pattern
from chaosckpt.model.golden_index import GoldenIndex
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.strategies.prediction import CensusIndex, PredictedRun


def replaced(schedule: Schedule, attempt: int, index: int, fault: Fault) -> Schedule:
    """The schedule with another fault in this place."""
    faults = list(schedule.attempts[attempt].faults)
    faults[index] = fault
    return with_plan(schedule, attempt, faults)


def with_plan(schedule: Schedule, attempt: int, faults: Sequence[Fault]) -> Schedule:
    """The schedule with these faults in one of its attempts."""
    plans = list(schedule.attempts)
    plans[attempt] = AttemptPlan(tuple(faults))
    return Schedule(tuple(plans))


def places(golden: GoldenIndex) -> dict[int, tuple[object, ...]]:
    """For each operation what it shares with those in the same place of other saves (or of other recoveries).

    Within its save an operation is told apart by how many of its like came before it: how often its file has been
    opened since the start of the run (the incarnation) differs from save to save where all of them go to one
    directory.
    """
    before: Counter[tuple[object, ...]] = Counter()
    found: dict[int, tuple[object, ...]] = {}
    for i, point in enumerate(golden.points):
        address = point.address
        like = (address.rank, address.role, address.op, file_pattern(address.path), point.label.stage)
        found[i] = (*like, before[point.label.step, like])
        before[point.label.step, like] += 1
    return found


def analogs(golden: GoldenIndex, place: tuple[object, ...]) -> list[int]:
    """Operations of a run in this place, in order: one for each save, or for the recovery."""
    return [i for i, other in places(golden).items() if other == place]


def retargeted(census_index: CensusIndex, best: Schedule, candidate: Schedule) -> Schedule | None:
    """`candidate` with every trigger that its expected runs don't have moved to the same place there.

    `best` is the schedule, with as many attempts, that it was made from, whose triggers are known to be met. None
    where a trigger that stood in its run has no such place any more, so that the fault would surely miss.
    """
    if len(best.attempts) != len(candidate.attempts):
        return candidate if _all_met(census_index, best, candidate) else None
    before = census_index.attempts(best)
    current = candidate
    for attempt in range(len(current.attempts)):
        now = census_index.attempts(current)[attempt]
        faults: list[Fault] = []
        for fault in current.attempts[attempt].faults:
            moved = _moved(fault, before[attempt], now)
            if moved is None:
                return None
            faults.append(moved)
        current = with_plan(current, attempt, faults)
    return current


def without_attempt(census_index: CensusIndex, best: Schedule, dropped: int) -> list[Schedule]:
    """`best` without one attempt: with the later faults where they are, and with them in the same places of the same
    saves.

    The two differ where another run gives one operation another address, as for a directory that every save goes to.
    """
    kept = [number for number in range(len(best.attempts)) if number != dropped]
    plain = Schedule(tuple(best.attempts[number] for number in kept))
    before, now = census_index.attempts(best), census_index.attempts(plain)
    plans: list[AttemptPlan] = []
    for number, course in zip(kept, now, strict=False):
        faults = best.attempts[number].faults
        plans.append(AttemptPlan(tuple(_same_place(fault, before[number].golden, course.golden) for fault in faults)))
    return [plain, Schedule(tuple(plans))]


def _same_place(fault: Fault, before: GoldenIndex, now: GoldenIndex) -> Fault:
    """The fault at the same place of the same save of another run; unchanged where one of its triggers has none
    there."""
    here = places(now)
    found: list[Trigger] = []
    for trigger in fault.triggers():
        i = before.index(trigger.address)
        step = None if i is None else before.points[i].label.step
        place = None if i is None else places(before)[i]
        alike = [j for j, other in here.items() if other == place and now.points[j].label.step == step]
        if not alike:
            return fault
        found.append(msgspec.structs.replace(trigger, address=now.points[alike[0]].address))
    return fault.moved(found) if found else fault


def _moved(fault: Fault, before: PredictedRun, now: PredictedRun) -> Fault | None:
    triggers = fault.triggers()
    if not triggers or all(now.golden.index(trigger.address) is not None for trigger in triggers):
        return fault
    found: list[Trigger] = []
    for trigger in triggers:
        old = before.golden.index(trigger.address)
        if old is None:
            # It landed where the census didn't expect it: nothing is known about where it belongs.
            return fault
        alike = analogs(now.golden, places(before.golden)[old])
        if not alike:
            return None
        found.append(msgspec.structs.replace(trigger, address=now.golden.points[alike[0]].address))
    return fault.moved(found)


def _all_met(census_index: CensusIndex, best: Schedule, candidate: Schedule) -> bool:
    """Whether every trigger is in the run that its attempt follows, unless `best` had some that weren't either."""
    return _unmet(census_index, candidate) <= _unmet(census_index, best)


def _unmet(census_index: CensusIndex, schedule: Schedule) -> int:
    predicted = census_index.attempts(schedule)
    return sum(
        course.golden.index(trigger.address) is None
        for plan, course in zip(schedule.attempts, predicted, strict=False)
        for fault in plan.faults
        for trigger in fault.triggers()
    )
