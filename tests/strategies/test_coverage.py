"""Coverage: points of the census, aimed at and covered."""

from __future__ import annotations

from chaosckpt.faults.cut import Cut
from chaosckpt.faults.space import Space
from chaosckpt.model.fault import Trigger
from chaosckpt.model.operation import Address
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.strategies import CensusPoint, aims_at_recovery, all_points, covered, points
from tests.strategies.dcp_model import MAIN


def test_a_recovery_after_a_crash_has_points_of_its_own(census):
    """The same listing in the first launch and in a restart are two points; a save's operation is one wherever it is."""
    listing = Address(0, "main", "list", "shared:.", 0, 0)
    rename = Address(0, "main", "rename", "shared:step_4/.metadata.tmp", 1, 0)
    known = all_points(census)
    assert covered(0, listing, known) == CensusPoint(listing)
    assert covered(2, listing, known) == CensusPoint(listing, restarted=True)
    assert covered(0, rename, known) == covered(2, rename, known) == CensusPoint(rename)
    assert covered(0, Address(7, "main", "list", "shared:.", 0, 0), known) is None


def test_all_points_are_those_of_the_main_topology(census):
    """Every operation of the main run, and every recovery from each saved step; other topologies aren't counted."""
    resumed = [run for run in census.runs if run.topology == MAIN and run.resumed_from is not None]
    recovery = {point.address for run in resumed for point in run.points if point.label.step is None}
    assert len(all_points(census)) == len(census.main.points) + len(recovery)


def test_a_schedule_aims_where_its_triggers_are(census):
    """Each trigger is one point; a fault without an operation of its own aims at none, and shows by evidence only."""
    first, second = census.main.points[3].address, census.main.points[90].address
    schedule = Schedule((AttemptPlan((Cut((Trigger(first),)),)), AttemptPlan((Cut((Trigger(second),)),))))
    assert points(schedule, census) == {CensusPoint(first), CensusPoint(second)}
    assert points(Schedule((AttemptPlan((Space(10),)),)), census) == frozenset()


def test_aiming_at_a_recovery_needs_a_crash_before(census):
    """The first launch looks for checkpoints too, but that is no recovery."""
    listing = census.main.points[0].address
    rename = next(point.address for point in census.main.points if point.address.op == "rename")
    at_start = AttemptPlan((Cut((Trigger(listing),)),))
    after_crash = Schedule((AttemptPlan((Cut((Trigger(rename, "after"),)),)), at_start))
    assert not aims_at_recovery(Schedule((at_start,)), census)
    assert aims_at_recovery(after_crash, census)
