"""Coverage: the points of the census that faults can be injected at, those that a schedule aims at, and those that a
trial has covered."""

from __future__ import annotations

import msgspec

from chaosckpt.model.census import Census, unsteady
from chaosckpt.model.operation import Address
from chaosckpt.model.schedule import Schedule
from chaosckpt.strategies.prediction import CensusIndex


class CensusPoint(msgspec.Struct, frozen=True, order=True):
    """An operation that a fault can be injected at. `restarted`: as part of the recovery after a crash, not of the first launch."""

    address: Address
    restarted: bool = False


def all_points(census: Census) -> frozenset[CensusPoint]:
    """Every operation of the main run, and of each recovery in the main topology, that a fault can be aimed at."""
    found: set[CensusPoint] = set()
    for run in census.runs:
        if run.topology != census.main.topology:
            continue
        resumed, skipped = run.resumed_from is not None, unsteady(run.points)
        found |= {
            CensusPoint(point.address, resumed)
            for i, point in enumerate(run.points)
            if i not in skipped and (not resumed or point.label.step is None)
        }
    return frozenset(found)


def points(schedule: Schedule, census: Census) -> frozenset[CensusPoint]:
    """The points at which the faults of a schedule aim."""
    known = all_points(census)
    aimed: set[CensusPoint] = set()
    for number, plan in enumerate(schedule.attempts):
        for trigger in (trigger for fault in plan.faults for trigger in fault.triggers()):
            found = _place(number, trigger.address, known)
            if found is not None:
                aimed.add(found)
    return frozenset(aimed)


def covered(attempt: int, address: Address, known: frozenset[CensusPoint]) -> CensusPoint | None:
    """The point that evidence of a fault at this operation covers; None for an operation outside `known`
    (all_points)."""
    return _place(attempt, address, known)


def aims_at_recovery(schedule: Schedule, census: Census) -> bool:
    """Whether some fault of the schedule is injected while a job recovers that was stopped before."""
    predicted = CensusIndex(census).attempts(schedule)
    for number, (plan, course) in enumerate(zip(schedule.attempts, predicted, strict=False)):
        for trigger in (trigger for fault in plan.faults for trigger in fault.triggers()):
            i = course.golden.index(trigger.address)
            if number and i is not None and course.golden.points[i].label.step is None:
                return True
    return False


def _place(attempt: int, address: Address, known: frozenset[CensusPoint]) -> CensusPoint | None:
    """A save's operation is the same point in every attempt; a recovery's is another one after a crash."""
    for restarted in (attempt > 0, False):
        point = CensusPoint(address, restarted)
        if point in known:
            return point
    return None
