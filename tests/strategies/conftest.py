"""The modelled census and scenario, made once."""

from __future__ import annotations

import pytest

from chaosckpt.model.census import Census
from chaosckpt.model.scenario import Scenario
from tests.strategies import dcp_model


@pytest.fixture(scope="session")
def census() -> Census:
    return dcp_model.census()


@pytest.fixture(scope="session")
def scenario() -> Scenario:
    return dcp_model.scenario()
