"""The walk through single faults: every point once, in saves and in recoveries."""

from __future__ import annotations

from chaosckpt.faults.cut import Cut
from chaosckpt.model.scenario import FaultSettings
from chaosckpt.strategies import CensusIndex, CensusPoint, all_points, points
from chaosckpt.strategies.drawing import permutation, single_schedules
from tests.strategies import dcp_model
from tests.strategies.kinds import KINDS


def test_the_walk_reaches_every_point(census, scenario):
    """Together the single schedules aim at every point of the census, those of recoveries included."""
    aimed: set[CensusPoint] = set()
    for schedule in single_schedules(scenario, CensusIndex(census), KINDS):
        aimed |= points(schedule, census)
    assert aimed == all_points(census)


def test_a_recovery_is_struck_after_a_commit(census, scenario):
    """Its schedule kills the job right after a commit, so that there is something to recover, and strikes in attempt 1."""
    walk = single_schedules(scenario, CensusIndex(census), KINDS)
    recoveries = [schedule for schedule in walk if len(schedule.attempts) == 2]
    assert len(recoveries) > 100
    for schedule in recoveries:
        (opening,) = schedule.attempts[0].faults
        assert isinstance(opening, Cut)
        assert (opening.at[0].address.op, opening.at[0].when) == ("rename", "after")


def test_without_whole_job_kills_there_is_no_walk(census):
    """Only enabled kinds are enumerated, and none but the cut is by itself."""
    fewer = {name: kind for name, kind in KINDS.items() if name != "cut"}
    assert single_schedules(dcp_model.scenario(), CensusIndex(census), fewer) == ()


def test_a_scenario_with_one_attempt_strikes_no_recovery(census):
    """A recovery needs a second attempt."""
    scenario = dcp_model.scenario(faults=FaultSettings(max_attempts=1))
    assert {len(schedule.attempts) for schedule in single_schedules(scenario, CensusIndex(census), KINDS)} == {1}


def test_a_permutation_holds_each_number_once():
    """Each seed has an order of its own, of all the numbers."""
    assert sorted(permutation(1, 500)) == list(range(500))
    assert permutation(1, 500) != permutation(2, 500)
    assert permutation(1, 8) == [3, 1, 7, 2, 4, 6, 0, 5], "stored trial names SEED:INDEX would mean something else"
