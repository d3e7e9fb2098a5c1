"""The whole-job kill at a cut."""

from __future__ import annotations

import pytest
from hypothesis import find, given, settings

from chaosckpt.faults.context import FaultContext
from chaosckpt.faults.cut import Cut
from chaosckpt.model.census import Census, GoldenRun, Label, Point
from chaosckpt.model.golden_index import GoldenIndex
from chaosckpt.model.operation import Address, Role
from chaosckpt.model.topology import Topology
from tests.faults.operations import trigger
from tests.strategies import dcp_model


def test_a_cut_waits_for_rest_and_kills_everyone(job):
    """A cut holds all its triggers, and strikes only when every rank is at rest."""
    cut = Cut((trigger(rank=0), trigger(rank=1)))
    cut.inject(job)
    assert cut.holds() == (trigger(rank=0), trigger(rank=1))
    assert job.acts == ["await rest", "kill job"]


@pytest.mark.parametrize("at", [(), (trigger(rank=1), trigger(rank=1, nth=2))])
def test_a_cut_names_each_rank_once(at):
    """A cut through no rank, or twice through one, can't be made."""
    with pytest.raises(ValueError, match="one operation a rank"):
        Cut(at)


def test_steps_are_held_but_not_struck():
    """A cut through training threads holds their steps too; what it strikes are operations, which shrinking moves."""
    cut = Cut((trigger(rank=1),), ((0, 3), (1, 3)))
    assert [str(held.address.path) for held in cut.holds()[1:]] == ["step:3", "step:3"]
    assert cut.triggers() == (trigger(rank=1),)
    assert "rank 0 about to train step 3" in cut.describe()
    with pytest.raises(ValueError, match="one training step a rank"):
        Cut((trigger(),), ((0, 3), (0, 4)))


def test_a_cut_with_steps_is_simpler_without_them():
    """Steps are left out first, all of them, then one by one; then all ranks train a step less."""
    cut = Cut((trigger(rank=1),), ((0, 3), (1, 3)))
    assert [simpler.steps for simpler in cut.simpler()] == [(), ((1, 3),), ((0, 3),), ((0, 2), (1, 2))]
    assert list(Cut((trigger(),)).simpler()) == []


def point(rank: int, role: Role, step: int, nth: int) -> Point:
    return Point(Address(rank, role, "write", f"shared:step_{step}/{rank}", 1, nth), Label("persist", step), 8)


def saving_in_threads() -> FaultContext:
    """Two ranks whose savers write step 2 in threads, while training comes as far as step 4, and step 4 at the end."""
    points = [point(rank, "thread", 2, nth) for nth in range(3) for rank in range(2)]
    points += [point(rank, "main", 4, nth) for nth in range(3) for rank in range(2)]
    order = range(len(points))
    run = GoldenRun(
        topology=Topology((1, 1)),
        resumed_from=None,
        points=tuple(points),
        reach=tuple((3, 3) if i < 6 else (6, 6) for i in order),
        training=tuple(4 if i < 6 else 0 for i in order),
        saves=(2, 4),
    )
    return FaultContext(scenario=dcp_model.scenario(), census=Census(runs=(run,)), golden=GoldenIndex(run))


DRAWN = Cut.strategy(saving_in_threads())
assert DRAWN is not None


@given(DRAWN)
@settings(max_examples=200, deadline=None, database=None)
def test_steps_are_drawn_where_training_gets_while_a_saver_is_held(cut):
    """After the save that is at work, up to the step that was measured; the same one for all; never for a rank's own saves."""
    assert len({step for _, step in cut.steps}) <= 1
    if any(trigger.address.role == "main" for trigger in cut.at):
        assert not cut.steps
    assert all(step in (3, 4) for _, step in cut.steps)


@pytest.mark.parametrize("steps", [((0, 3),), ((1, 4),), ((0, 3), (1, 3))])
def test_one_rank_or_all_are_held_before_a_step(steps):
    """Both the rank of the saver alone and every rank occur."""
    assert DRAWN is not None
    assert find(DRAWN, lambda cut: cut.steps == steps, settings=settings(max_examples=2000, database=None))
