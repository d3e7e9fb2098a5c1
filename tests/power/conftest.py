"""One warm arena for all canaries, with the census of the correct target from which most are derived."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chaosckpt.engine.golden.census import measure
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.model.census import Census
from tests.engine.case import scenario_of
from tests.power.warm_arena import use, warm


@pytest.fixture(scope="session")
def arena() -> Iterator[Arena]:
    """Warm, and used by one test after the other."""
    arena = warm()
    yield arena
    arena.close()


@pytest.fixture(scope="session")
def census(arena: Arena) -> Census:
    """The census of torch-save-atomic: by it is judged what a trial leaves on storage."""
    scenario = scenario_of("torch-save-atomic")
    use(arena, scenario)
    return measure(scenario, arena)
