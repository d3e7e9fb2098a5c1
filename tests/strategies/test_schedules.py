"""Schedules as a Hypothesis strategy, for tests of whoever works with schedules."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaosckpt.model.schedule import Schedule
from chaosckpt.strategies import schedules
from tests.strategies import dcp_model
from tests.strategies.kinds import KINDS
from tests.strategies.trial_model import missed

SCHEDULES = schedules(dcp_model.scenario(), dcp_model.census(), KINDS)


@given(schedule=SCHEDULES, speed=st.integers(0, 3))
@settings(max_examples=150, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_is_drawn_lands(schedule: Schedule, speed: int):
    """The strategy keeps its rules for every choice, also for those that a seed seldom makes."""
    assert missed(schedule, speed) == []
