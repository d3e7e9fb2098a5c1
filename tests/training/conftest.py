"""Warms this process before ranks are forked from it."""

from __future__ import annotations

import pytest

from tests.training.ranks import rehearse


@pytest.fixture(scope="session", autouse=True)
def _warm() -> None:
    rehearse()
