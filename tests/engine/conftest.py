"""Arenas shared by the engine's tests: a fork server takes seconds to warm up, a trial a fraction of one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.case import Case, scenario_of


@pytest.fixture(scope="session")
def dcp() -> Iterator[Case]:
    """Two nodes with one rank each, saving through DCP; the world may change to one or to three ranks."""
    case = Case(scenario_of("dcp", ((1, 1), (1,), (2, 1))))
    yield case
    case.close()


@pytest.fixture(scope="session")
def two_tier() -> Iterator[Case]:
    """Two nodes with node-local storage that is drained to shared storage."""
    case = Case(scenario_of("two-tier"))
    yield case
    case.close()


@pytest.fixture(scope="session")
def dcp_async() -> Iterator[Case]:
    """A job whose saver works in a thread while it trains: two saves in four steps."""
    case = Case(scenario_of("dcp-async", workload={"steps": 4, "save_every": 2}))
    yield case
    case.close()
