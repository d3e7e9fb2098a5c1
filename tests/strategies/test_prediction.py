"""The prediction: which golden run every attempt follows."""

from __future__ import annotations

import pytest

from chaosckpt.faults.cut import Cut
from chaosckpt.faults.latency import Latency
from chaosckpt.faults.local_storage_loss import LocalStorageLoss
from chaosckpt.faults.node_loss import NodeLoss
from chaosckpt.faults.shared_storage_loss import SharedStorageLoss
from chaosckpt.faults.world_size import WorldSize
from chaosckpt.model.census import Census, GoldenRun
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.model.topology import Topology
from chaosckpt.strategies import CensusIndex
from tests.strategies.dcp_model import MAIN, golden


@pytest.fixture(scope="module")
def census_index(census) -> CensusIndex:
    return CensusIndex(census)


def plan(*faults: Fault) -> AttemptPlan:
    return AttemptPlan(faults)


def at_commit(census_index: CensusIndex, step: int, when: str = "after") -> Trigger:
    return Trigger(
        census_index.main.points[census_index.main.commits[step]].address, "after" if when == "after" else "before"
    )


def resumed(census_index: CensusIndex, *plans: AttemptPlan) -> list[tuple[str, int | None, int | None]]:
    predicted = census_index.attempts(Schedule(plans))
    return [(str(e.golden.topology), e.golden.run.resumed_from, e.interrupted) for e in predicted]


def test_a_cut_decides_what_is_resumed(census_index):
    """Before the commit of step 4 the job resumes from 2 and saves 4 again; after it, from 4 with nothing interrupted."""
    assert resumed(census_index, plan(Cut((at_commit(census_index, 4, "before"),)))) == [
        ("1+1", None, None),
        ("1+1", 2, 4),
    ]
    assert resumed(census_index, plan(Cut((at_commit(census_index, 4),)))) == [("1+1", None, None), ("1+1", 4, None)]


def test_attempts_chain(census_index):
    """Each attempt starts from what the one before left: a cut of the first recovery changes nothing."""
    first = plan(Cut((at_commit(census_index, 2),)))
    recovery = census_index.attempts(Schedule((first,)))[1].golden
    assert recovery.points[0].label.step is None
    second = plan(Cut((Trigger(recovery.points[0].address),)))
    assert resumed(census_index, first, second)[1:] == [("1+1", 2, None), ("1+1", 2, None)]


def test_a_job_that_is_only_delayed_finishes(census_index):
    """A fault that ends nothing leaves the newest step of the whole run."""
    assert resumed(census_index, plan(Latency(at_commit(census_index, 2, "before"))))[1] == ("1+1", 6, None)


def test_a_new_topology_stays(census_index):
    """From the attempt that changes it on, every later one has the new number of ranks."""
    first = plan(Cut((at_commit(census_index, 2),)))
    found = census_index.attempts(Schedule((first, plan(WorldSize(Topology((1, 1, 1)))))))
    assert [str(e.golden.topology) for e in found] == ["1+1", "1+1+1", "1+1+1"]
    assert found[1].exact
    assert found[1].golden.run.resumed_from == 2


def test_a_run_that_is_missing_is_stood_in_for_by_its_neighbour(census):
    """Of the same topology, the one resumed from the nearest step; it is no exact one, and says the true step."""
    census_index = CensusIndex(Census(runs=tuple(run for run in census.runs if run.resumed_from != 4)))
    predicted = census_index.lookup(MAIN, 4)
    assert not predicted.exact
    assert predicted.golden.run.resumed_from == 4
    assert predicted.golden.points == census_index.lookup(MAIN, 2).golden.points
    assert census_index.lookup(Topology((3,)), 4).golden.points == ()


def test_when_the_only_tier_is_gone_nothing_is_foreseen(census_index):
    """A job without a checkpoint to load refuses: no operation of it is aimed at."""
    found = census_index.attempts(Schedule((plan(Cut((at_commit(census_index, 2),))), plan(SharedStorageLoss()))))
    assert found[1].golden.points == ()
    assert found[1].golden.run.resumed_from is None


def test_a_loss_elsewhere_changes_nothing(census_index):
    """Node-local storage that the target doesn't use may go without changing what recovery does."""
    first = plan(Cut((at_commit(census_index, 2),)))
    assert census_index.attempts(Schedule((first, plan(LocalStorageLoss()))))[1].exact
    assert census_index.attempts(Schedule((plan(NodeLoss(at_commit(census_index, 2))),)))[1].exact


def test_with_another_tier_left_recovery_is_open():
    """A target with two tiers goes on from the other one: its later saves are known, its recovery isn't."""
    run, local = golden(MAIN, None), golden(MAIN, None, tier="local")
    both = GoldenRun(topology=MAIN, resumed_from=None, points=run.points + local.points, commits=run.commits)
    resumed_run = GoldenRun(topology=MAIN, resumed_from=2, points=golden(MAIN, 2).points)
    census_index = CensusIndex(Census(runs=(both, resumed_run)))
    found = census_index.attempts(Schedule((plan(Cut((at_commit(census_index, 2),))), plan(LocalStorageLoss()))))
    assert not found[1].exact
    assert found[1].golden.run.resumed_from == 2
    assert found[1].golden.points
