"""Never bare: real recovery on prefixes of the golden run tells where a target leaves nothing, and nowhere for a correct one."""

from __future__ import annotations

from chaosckpt.engine.golden.census import measure
from chaosckpt.engine.golden.recovery import spread
from chaosckpt.engine.runner.arena import open_local
from chaosckpt.model.census import Census
from tests.engine.case import scenario_of


def swept(use: str) -> Census:
    scenario = scenario_of(use, ((1, 1),), workload={"steps": 2})
    arena = open_local(scenario)
    try:
        return measure(scenario, arena, sweeping=True)
    finally:
        arena.close()


def test_a_correct_target_always_leaves_something() -> None:
    """Goal: after every operation of a fault-free run the newest finished save, or a newer one, is found."""
    census = swept("torch-save-atomic")
    assert census.prefixes > 4
    assert census.gaps == ()


def test_a_target_that_saves_over_its_only_checkpoint_is_laid_bare() -> None:
    """Goal: each operation of the second save up to its commit leaves nothing, the commit itself something."""
    census = swept("dcp-overwrite")
    assert {point.required for point in census.gaps} == {1}
    assert {point.found for point in census.gaps} == {None}
    main = census.main
    commit = main.points[main.commits[2]].address
    assert commit not in {point.address for point in census.gaps}
    assert {"open_write", "unlink"} <= {point.address.op for point in census.gaps}


def test_of_many_places_some_are_tried_spread_evenly() -> None:
    """Goal: thousands of files make a preparation longer, not endless; a few are all tried."""
    assert spread([3, 5, 9], 3) == [3, 5, 9]
    tried = spread(list(range(6000)), 1000)
    assert (len(tried), tried[0], tried[-1]) == (1000, 0, 5994)
