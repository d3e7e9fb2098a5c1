"""The golden runs of a target: what is in its census, whatever it calls its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaosckpt.engine.golden.census import measure
from chaosckpt.engine.runner.arena import node_settings
from chaosckpt.model.census import Census
from tests.engine.case import Case, scenario_of


@pytest.fixture
def names_anew(dcp_async: Case) -> Iterator[Case]:
    """The warm arena of another case, whose ranks save under names that are new each time; afterwards they are what they were."""
    node = dcp_async.arena.nodes[0]
    case = Case(scenario_of(f"{Path(__file__).with_name('names_anew.py')}:NamesAnew", ((1,),)), dcp_async.arena)
    node.use(node_settings(case.scenario, Path(), gate=True))
    yield case
    node.use(node_settings(dcp_async.scenario, Path(), gate=True))
    node.decode(())


def test_a_save_whose_names_are_new_each_time_is_in_the_census(names_anew: Case) -> None:
    """Goal: two measurements find the same addresses, with nothing drawn in them, so that faults can be aimed at these files."""
    one, two = (measure(names_anew.scenario, names_anew.arena) for _ in range(2))
    assert _written(one) == {"shared:rank-0.pt.*", "shared:batched/*"}
    assert one.fingerprint == two.fingerprint
    assert set(one.left) == {"shared:rank-0.pt", "shared:batched/*"}


def _written(census: Census) -> set[str]:
    return {point.address.path for run in census.runs for point in run.points if point.address.op == "write"}
