"""Which input the expected overhead hangs on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from chaosckpt.measure.interval import advise
from chaosckpt.measure.limits import Needs
from tests.measure.asked import BASE, HOUR, inputs


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(inputs())
def test_all_times_in_another_unit(asked):
    """What weighs is ratios of times: the elasticities to all times, steps included in none, add up to zero."""
    free = replace(asked, step_seconds=None, needs=Needs(tolerated_loss_seconds=asked.needs.tolerated_loss_seconds))
    weights = advise(free).elasticities
    assert sum(entry.value for entry in weights) == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "stall"),
        ({"restart_seconds": 6 * HOUR}, "restart"),
        ({"completion_seconds": 3 * HOUR}, "completion after the stall"),
        ({"slowdown_seconds": 50.0}, "slower steps during a save"),
        ({"stall_seconds": 0.0, "completion_seconds": 0.0, "restart_seconds": 0.0}, "mean time between failures"),
    ],
)
def test_the_dominant_input(changes, name):
    """The input that dominates is the one that was made large."""
    assert advise(replace(BASE, **changes)).dominant == name
