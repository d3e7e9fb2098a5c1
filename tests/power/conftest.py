"""One warm arena for all canaries: they differ in a few lines, not in what their ranks import."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.case import Case, scenario_of


@pytest.fixture(scope="session")
def atomic() -> Iterator[Case]:
    """The correct target from which most canaries are derived."""
    case = Case(scenario_of("torch-save-atomic"))
    yield case
    case.close()
