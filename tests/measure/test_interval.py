"""The advised interval: the least expected overhead within its limits, proved on a simulated long job and by properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from chaosckpt.errors import UsageError
from chaosckpt.measure import failure_rate
from chaosckpt.measure.interval import IntervalInputs, advise
from chaosckpt.measure.limits import Needs
from chaosckpt.measure.overhead import overhead
from tests.measure.asked import BASE, HOUR, inputs
from tests.measure.long_job import Job, failure_times


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(inputs())
def test_the_least_point_of_the_curve_is_the_advice(asked):
    """Among the points of the curve that keep the limits, the advised interval has the least overhead."""
    advice = advise(asked)
    assert (advice.seconds, advice.overhead) in advice.curve
    bounds = asked.bounds()
    high = math.inf if bounds.high_seconds is None else bounds.high_seconds
    allowed = [cost for interval, cost in advice.curve if bounds.low_seconds <= interval <= high]
    assert advice.overhead <= min(allowed) * (1 + 1e-9)


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(inputs(), st.floats(1.0, 100.0))
def test_rarer_failures_never_shorten_the_interval(asked, factor):
    """The advised interval grows, or stays, with the mean time between failures; the overhead falls, or stays."""
    rate = failure_rate.given(asked.failure_rate.mtbf_seconds * factor)
    advice, rarer = advise(asked), advise(replace(asked, failure_rate=rate))
    assert rarer.seconds >= advice.seconds * (1 - 1e-9)
    assert rarer.overhead <= advice.overhead * (1 + 1e-9)


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(inputs())
def test_steps_keep_the_bounds(asked):
    """The interval in steps is at least the lower bound, and not above the upper one where whole steps allow it."""
    advice, bounds = advise(asked), asked.bounds()
    if asked.step_seconds is None:
        assert advice.steps is None
        return
    assert advice.steps is not None
    assert advice.steps * asked.step_seconds >= bounds.low_seconds * (1 - 1e-6)
    if bounds.high_seconds is not None:
        assert (advice.steps - 1) * asked.step_seconds < bounds.high_seconds


def test_without_limits_the_optimum_is_advised():
    """Where nothing limits it the advised interval is the optimum, and near Daly's."""
    advice = advise(BASE)
    assert advice.seconds == advice.optimum_seconds
    assert advice.seconds == pytest.approx(advice.daly_seconds, rel=0.001)
    assert (advice.young_holds, advice.daly_holds) == (True, True)
    assert advice.saving_share + advice.lost_work_share + advice.restart_share == pytest.approx(advice.overhead)


def test_counted_failures_bound_the_advice():
    """Four failures in 96 hours have the same mean as one a day, and bounds on both sides of the interval."""
    advice = advise(replace(BASE, failure_rate=failure_rate.counted(4, 96 * HOUR)))
    assert advice.seconds == pytest.approx(advise(BASE).seconds)
    assert advice.low_seconds is not None
    assert advice.high_seconds is not None
    assert advice.low_seconds < advice.seconds < advice.high_seconds


def test_an_assumed_rate_is_told():
    """Where nobody said how often the job fails, a note says what was assumed."""
    advice = advise(replace(BASE, failure_rate=failure_rate.assumed()))
    assert any("one failure a day is assumed" in note for note in advice.notes)


def test_formulas_that_do_not_hold_are_told():
    """With saves as long as the mean both formulas are said to be invalid, with how far off they are."""
    advice = advise(replace(BASE, stall_seconds=24 * HOUR, completion_seconds=24 * HOUR))
    assert any(note.startswith("Young's formula does not apply") and "68.1% above" in note for note in advice.notes)
    assert any(note.startswith("Daly's formula does not apply") and "1.8% below" in note for note in advice.notes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"stall_seconds": -1.0}, "stall_seconds is -1"),
        ({"restart_seconds": math.inf}, "restart_seconds is inf"),
        ({"needs": Needs(tolerated_loss_seconds=0.0)}, "tolerated loss is 0"),
        ({"needs": Needs(keep_seconds=-1.0)}, "checkpoints are kept is -1"),
    ],
)
def test_nonsense_is_refused(changes, words):
    """A time that can't be is refused in a sentence that names it."""
    with pytest.raises(UsageError, match=words):
        advise(replace(BASE, **changes))


def simulated(asked: IntervalInputs, interval: float, failures: list[float]) -> float:
    job = Job(
        interval=interval,
        stall=asked.stall_seconds,
        completion=asked.completion_seconds,
        slowdown=asked.slowdown_seconds,
        restart=asked.restart_seconds,
    )
    return job.overhead(failures)


OFTEN = replace(BASE, failure_rate=failure_rate.given(2 * HOUR))
FAILURES = failure_times(2 * HOUR, 3_000, seed=2)
LONG = {
    "fast saves": OFTEN,
    "slow storage": replace(OFTEN, stall_seconds=300.0, completion_seconds=300.0),
    "a backlog": replace(OFTEN, stall_seconds=0.5, completion_seconds=400.0, slowdown_seconds=2.0),
}


@pytest.mark.parametrize("case", LONG)
def test_a_long_job_costs_least_at_the_advised_interval(case):
    """A simulated job that fails 3,000 times costs more at the neighbours of the advised interval on both sides."""
    asked = LONG[case]
    seconds = advise(asked).seconds
    costs = {factor: simulated(asked, seconds * factor, FAILURES) for factor in (0.5, 0.75, 1.0, 1.35, 2.0)}
    assert min(costs, key=costs.__getitem__) == 1.0
    assert costs[1.0] == pytest.approx(overhead(asked.costs(), seconds), rel=0.05)


def test_a_long_job_costs_least_at_the_limit():
    """Where a tolerated loss binds, every shorter interval costs the simulated job more, and only forbidden ones cost less."""
    asked = replace(OFTEN, needs=Needs(tolerated_loss_seconds=200.0))
    seconds = advise(asked).seconds
    costs = [simulated(asked, seconds * factor, FAILURES[:1000]) for factor in (1.5, 1.0, 0.8, 0.5)]
    assert costs == sorted(costs)
