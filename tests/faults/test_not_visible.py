"""What one rank can't see yet."""

from __future__ import annotations

import errno

import pytest
from hypothesis import find, settings
from hypothesis.errors import NoSuchExample

from chaosckpt.faults.context import FaultContext
from chaosckpt.faults.not_visible import NotVisible, concerns, parent
from chaosckpt.model.census import Census, GoldenRun, Label, Point
from chaosckpt.model.fault import Errno, Hide, Memory, Trigger
from chaosckpt.model.golden_index import GoldenIndex
from chaosckpt.model.operation import Address
from chaosckpt.model.topology import Topology
from tests.faults.operations import address, operation, trigger
from tests.strategies import dcp_model

FOLDER = "shared:step_4"
MISSING = Errno(errno.ENOENT)


def first(op: str = "list", path: str = "shared:.") -> Trigger:
    return Trigger(address(op, path))


def test_it_hides_a_directory_from_listings_and_lookups():
    """From the trigger on the entry is left out of its parent's listing, and what is below it isn't there."""
    fault, memory = NotVisible(first(), FOLDER), Memory()
    assert fault.decide(operation("stat", FOLDER), memory) is None, "before the trigger everything is seen"
    assert fault.decide(operation("list", "shared:."), memory) == Hide(("step_4",))
    assert memory.took_effect
    assert fault.decide(operation("open_read", f"{FOLDER}/.metadata"), memory) == MISSING
    assert fault.decide(operation("stat", FOLDER), memory) == MISSING
    assert fault.decide(operation("stat", "shared:step_40"), memory) is None
    assert fault.decide(operation("write", f"{FOLDER}/x"), memory) is None


def test_other_ranks_see_it():
    """Only the view of the trigger's rank lags."""
    fault, memory = NotVisible(Trigger(address("list", "shared:.", rank=0)), FOLDER), Memory(took_effect=True)
    assert fault.decide(operation("stat", FOLDER), memory) is None


def test_it_appears_after_so_many_lookups():
    """With `lookups` the path is there at the next look."""
    fault, memory = NotVisible(first("stat", FOLDER), FOLDER, lookups=2), Memory()
    answers = [fault.decide(operation("stat", FOLDER, nth=nth), memory) for nth in range(3)]
    assert answers == [MISSING, MISSING, None]


def test_what_stands_where():
    """Names in the root have the tier's root above them; names that only begin alike aren't below one another."""
    assert parent("shared:step_4") == "shared:."
    assert parent("shared:step_4/a") == FOLDER
    assert concerns(address("list", FOLDER), f"{FOLDER}/a")
    assert not concerns(address("stat", "shared:step_44"), FOLDER)


def test_shrinking_keeps_it_sensible():
    """It moves to another look for the same path, else hides what that one looks for, and never what isn't looked for."""
    fault = NotVisible(first(), FOLDER, lookups=3)
    assert fault.moved([first("stat", f"{FOLDER}/.metadata")]).path == FOLDER
    assert fault.moved([first("stat", "shared:step_2")]).path == "shared:step_2"
    assert fault.moved([trigger("write")]) is fault
    assert [simpler.lookups for simpler in fault.simpler()] == [0]
    with pytest.raises(ValueError, match="doesn't look for"):
        NotVisible(trigger("write"), FOLDER)


def test_what_a_peer_has_just_made_can_be_hidden_from_the_rank_that_looks_at_it():
    """Goal: a look in a save is struck where a peer has surely made the file, not where the rank asks whether there is one."""
    made = Address(0, "main", "mkdir", FOLDER, 0, 0)
    early, late = (Address(1, "main", "stat", FOLDER, 0, nth) for nth in range(2))
    run = GoldenRun(
        topology=Topology((2,)),
        resumed_from=None,
        points=tuple(Point(at, Label("persist", 4)) for at in (early, made, late)),
        reach=((0, 0), (0, 1), (1, 1)),
    )
    census = Census(runs=(run,))
    context = FaultContext(scenario=dcp_model.scenario(), census=census, golden=GoldenIndex(run))
    strategy = NotVisible.strategy(context)
    assert strategy is not None
    assert find(strategy, lambda fault: True).at.address == late
    with pytest.raises(NoSuchExample):
        find(strategy, lambda fault: fault.at.address == early, settings=settings(max_examples=50, database=None))
