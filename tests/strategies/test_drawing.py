"""Drawing: a pure function of seed and index, whose schedules alternate, vary and hit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import find, settings

from chaosckpt.errors import UsageError
from chaosckpt.faults.errno import StorageError
from chaosckpt.model.scenario import FaultSettings
from chaosckpt.model.schedule import decode, encode
from chaosckpt.strategies import CensusIndex, draw, is_single
from chaosckpt.strategies.drawing import recoveries
from tests.strategies import dcp_model
from tests.strategies.kinds import KINDS
from tests.strategies.trial_model import missed

TRIALS = 400


@pytest.fixture(scope="module")
def drawn(census, scenario):
    return [draw(1, index, scenario, census, KINDS) for index in range(TRIALS)]


def test_the_first_trial_is_a_control(drawn):
    """Index 0 has no faults, so that a job that fails by itself is told apart."""
    assert drawn[0].attempts == ()
    assert all(schedule.faults for schedule in drawn[1:])


def test_singles_and_drawn_ones_alternate(census, scenario, drawn):
    """Odd trials have a single fault, a cut that none had before and another kind by turns; even ones are drawn."""
    assert [is_single(1, index, scenario, census, KINDS) for index in range(6)] == [False, True] * 3
    walked = [schedule.digest for schedule in drawn[1::4]]
    assert len(set(walked)) == len(walked)
    assert all(len(schedule.attempts[-1].faults) == 1 for schedule in drawn[1::2])
    assert {schedule.attempts[-1].faults[0].kind for schedule in drawn[1::4]} == {"cut"}
    assert "cut" not in {schedule.attempts[-1].faults[0].kind for schedule in drawn[3::4]}


def test_when_the_points_are_used_up_the_other_kinds_go_on(census, scenario):
    """The walk through single points ends, the search doesn't."""
    late = [draw(1, index, scenario, census, KINDS) for index in range(10_001, 10_021, 2)]
    assert all(schedule.attempts[-1].faults[0].kind != "cut" for schedule in late)
    assert len({schedule.digest for schedule in late}) > 8


def test_drawing_forgets_what_it_drew_before(census, scenario, drawn):
    """Another order of calls, and another search between them, give the same schedules."""
    other = dcp_model.census(topologies=(dcp_model.MAIN,))
    draw(1, 2, scenario, other, KINDS)
    again = {index: draw(1, index, scenario, census, KINDS) for index in reversed(range(0, TRIALS, 7))}
    assert all(drawn[index] == schedule for index, schedule in again.items())


def test_a_census_taken_again_draws_the_same(scenario, census, drawn):
    """How fast each rank happened to be in the golden runs decides nothing: the fingerprint is equal, and so is each trial."""
    again = dcp_model.census(speed=7)
    assert again.main.points != census.main.points
    assert again.fingerprint == census.fingerprint
    assert [draw(1, index, scenario, again, KINDS) for index in range(TRIALS)] == drawn


def test_another_seed_gives_other_schedules(census, scenario, drawn):
    """Seeds differ in both kinds of trial."""
    other = [draw(2, index, scenario, census, KINDS) for index in range(1, 21)]
    same = sum(a == b for a, b in zip(drawn[1:21], other, strict=True))
    assert same <= 3


SCRIPT = """
import json, sys
from tests.strategies import dcp_model
from tests.strategies.kinds import KINDS
from chaosckpt.strategies import draw
kinds = dict(sorted(KINDS.items(), reverse=bool(int(sys.argv[1]))))
census, scenario = dcp_model.census(), dcp_model.scenario()
print(json.dumps([draw(1, index, scenario, census, kinds).digest for index in range(40)]))
"""


@pytest.mark.parametrize(("hash_seed", "reverse"), [("0", "0"), ("4242", "1")])
def test_every_process_draws_the_same(drawn, tmp_path, hash_seed, reverse):
    """Another process, directory, hash seed and order of plugins draw the same schedules, and leave no file behind."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": root}
    environment.pop("HYPOTHESIS_STORAGE_DIRECTORY", None)
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, reverse],
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env=environment,
        text=True,
    )
    assert json.loads(ran.stdout) == [schedule.digest for schedule in drawn[:40]]
    assert list(tmp_path.iterdir()) == []


def test_schedules_round_trip(drawn):
    """What is drawn can be stored with a finding and read again."""
    assert all(decode(encode(schedule), KINDS.values()) == schedule for schedule in drawn)


def test_no_drawn_fault_misses(drawn):
    """On a job that does what the census says, every fault lands, at any relative speed of the ranks."""
    for speed in range(3):
        assert [(schedule, found) for schedule in drawn if (found := missed(schedule, speed))] == []


def test_every_kind_and_shape_is_drawn(census, scenario):
    """Within the usual campaign there are several attempts, several faults, each kind, and few of those that cost much."""
    schedules = [draw(3, index, scenario, census, KINDS) for index in range(2, 1200, 2)]
    attempts = Counter(len(schedule.attempts) for schedule in schedules)
    kinds = Counter(kind for schedule in schedules for kind in {fault.kind for fault in schedule.faults})
    assert set(attempts) == {1, 2, 3}
    assert min(attempts.values()) > 30
    # This job has no node-local storage and no saver process; damage at rest must be asked for.
    assert set(kinds) == set(KINDS) - {"local-storage-loss", "saver-kill", "bit-flip", "truncation"}
    assert kinds["node-loss"] <= 24
    assert sum(len(schedule.faults) > 1 for schedule in schedules) > 200


def test_the_rules_of_a_schedule(drawn, scenario):
    """At most one fault ends an attempt for sure and it stands last, perhaps behind an error that the attempt may survive; what
    strikes between attempts stands first; only what another run left may strike before attempt 0."""
    for schedule in drawn:
        assert len(schedule.attempts) <= scenario.faults.max_attempts
        for number, plan in enumerate(schedule.attempts):
            assert 1 <= sum(fault.kind != "save-retry" for fault in plan.faults) <= scenario.faults.max_per_attempt
            kinds = ["between" if f.between else "go on" if f.ends == "nothing" else "end" for f in plan.faults]
            assert kinds == sorted(kinds, key=["between", "go on", "end"].index)
            ends = [fault.ends for fault in plan.faults if fault.ends != "nothing"]
            assert len(ends) <= 1 or (len(ends) == 2 and ends[0] == "perhaps" and ends[1] != "perhaps")
            assert number > 0 or all(
                fault.kind in ("stale-save", "save-retry") for fault in plan.faults if fault.between
            )


def test_only_the_kinds_of_the_scenario_are_drawn(census):
    """A scenario's own weights rule out the kinds that it doesn't name, and those of weight 0."""
    scenario = dcp_model.scenario(faults=FaultSettings(kinds={"sigkill": 1.0, "latency": 2.0, "cut": 0.0}))
    schedules = [draw(1, index, scenario, census, KINDS) for index in range(1, 80)]
    assert {fault.kind for schedule in schedules for fault in schedule.faults} == {"sigkill", "latency"}


def test_an_unknown_kind_is_refused(census):
    """A kind that no plugin offers is named, with those that there are."""
    scenario = dcp_model.scenario(faults=FaultSettings(kinds={"sigkil": 1.0}))
    with pytest.raises(UsageError, match="'sigkil', which no plugin offers; there are: bit-flip, cut, errno"):
        draw(1, 2, scenario, census, KINDS)


def test_a_plugin_more_leaves_the_single_faults_alone(census, scenario, drawn):
    """Other schedules change with the set of kinds, as documented; the walk through single points doesn't."""
    fewer = {name: kind for name, kind in KINDS.items() if name != "latency"}
    assert [draw(1, index, scenario, census, fewer) for index in range(1, 80, 4)] == drawn[1:80:4]


@pytest.mark.parametrize("op", ["list", "stat", "open_read", "read"])
def test_errors_strike_whatever_a_recovery_reads(census, scenario, op):
    """EIO is drawn for listings, looks, opens and reads of a job that recovers after a crash."""
    for _, context in recoveries(scenario, CensusIndex(census), KINDS):
        strategy = StorageError.strategy(context)
        assert strategy is not None
        quiet = settings(max_examples=2000, database=None)
        assert find(strategy, lambda fault: (fault.error, fault.at.address.op) == ("EIO", op), settings=quiet)


def test_damage_at_rest_is_drawn_where_it_is_asked_for(census):
    """A kind of weight 0 takes part once a scenario names it; nothing is aimed at what follows it."""
    scenario = dcp_model.scenario(faults=FaultSettings(kinds={"cut": 1.0, "bit-flip": 1.0, "truncation": 1.0}))
    schedules = [draw(1, index, scenario, census, KINDS) for index in range(2, 200, 2)]
    damaged = [
        plan for schedule in schedules for plan in schedule.attempts if any(fault.blurs for fault in plan.faults)
    ]
    assert {fault.kind for plan in damaged for fault in plan.faults} == {"bit-flip", "truncation"}
    assert all(schedule.attempts[-1] is plan for schedule in schedules for plan in schedule.attempts if plan in damaged)
