"""The advised interval: the least expected overhead within its limits, proved on a simulated long job and by properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from chaosckpt.errors import UsageError
from chaosckpt.measure import failure_rate
from chaosckpt.measure.interval import advise
from chaosckpt.measure.interval_inputs import IntervalInputs
from chaosckpt.measure.limits import Needs
from chaosckpt.measure.overhead import overhead
from tests.measure.long_job import Job, failure_times

HOUR = 3600.0
BASE = IntervalInputs(
    failure_rate=failure_rate.given(24 * HOUR), stall_seconds=5.0, completion_seconds=60.0, restart_seconds=300.0
)
times = st.floats(1e-3, 100.0)


@st.composite
def inputs(draw) -> IntervalInputs:
    stall = draw(times)
    return IntervalInputs(
        failure_rate=failure_rate.given(draw(st.floats(100.0, 1e6))),
        stall_seconds=stall,
        completion_seconds=stall + draw(st.one_of(st.just(0.0), times)),
        restart_seconds=draw(times),
        slowdown_seconds=draw(st.one_of(st.just(0.0), times)),
        step_seconds=draw(st.one_of(st.none(), st.floats(1e-3, 10.0))),
        needs=Needs(
            tolerated_loss_seconds=draw(st.one_of(st.none(), st.floats(1.0, 1e5))),
            checkpoint_bytes=draw(st.integers(0, 10**12)),
            retained_generations=draw(st.integers(1, 5)),
            space_bytes=draw(st.one_of(st.none(), st.integers(0, 10**13))),
            keep_seconds=draw(st.one_of(st.none(), st.floats(1.0, 1e5))),
        ),
    )


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


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(inputs())
def test_limits_are_respected(asked):
    """Every limit that holds bounds the advised interval; one that doesn't hold is told in a note."""
    advice = advise(asked)
    for limit in advice.limits:
        if not limit.holds:
            assert limit.sentence in advice.notes
        elif limit.bound == "at least":
            assert limit.seconds is not None
            assert advice.seconds >= limit.seconds
        elif limit.bound == "at most":
            assert limit.seconds is not None
            assert advice.seconds <= limit.seconds
            assert advice.worst_loss_seconds <= asked.needs.tolerated_loss_seconds * (1 + 1e-9)
    assert advice.near_seconds[0] <= advice.seconds <= advice.near_seconds[1]


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
def test_all_times_in_another_unit(asked):
    """What weighs is ratios of times: the elasticities to all times, steps included in none, add up to zero."""
    free = replace(asked, step_seconds=None, needs=Needs(tolerated_loss_seconds=asked.needs.tolerated_loss_seconds))
    weights = advise(free).elasticities
    assert sum(entry.value for entry in weights) == pytest.approx(0.0, abs=0.02)


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


def test_the_backlog_limit():
    """Saves that take longer than the optimal interval set it: as long as the longest completion that was seen."""
    advice = advise(replace(BASE, completion_seconds=2000.0, slowest_completion_seconds=2500.0))
    assert advice.optimum_seconds == pytest.approx(1995.0), "there saves just don't wait"
    assert advice.seconds == 2500.0


def test_a_tolerated_loss_shortens_the_interval():
    """200 tolerated seconds, less a save and a completion, are left for the interval, and weigh most."""
    advice = advise(replace(BASE, needs=Needs(tolerated_loss_seconds=200.0)))
    assert advice.seconds == 200.0 - 60.0 - 5.0
    assert advice.worst_loss_seconds == 200.0
    assert advice.dominant == "tolerated loss"


def test_a_tolerated_loss_that_can_not_be_kept():
    """A loss shorter than two completions can't be kept: that is said, with what the least would be."""
    advice = advise(replace(BASE, needs=Needs(tolerated_loss_seconds=100.0)))
    assert advice.seconds == 60.0
    (limit,) = (limit for limit in advice.limits if limit.name == "tolerated loss")
    assert not limit.holds
    assert "1 min 40 s are tolerated" in limit.sentence
    assert "2 min 5 s old" in limit.sentence


def test_space_for_what_is_retained():
    """Three retained checkpoints and a fourth being written don't fit the space of three and a half."""
    needs = Needs(checkpoint_bytes=10**9, retained_generations=3, space_bytes=35 * 10**8)
    advice = advise(replace(BASE, needs=needs))
    limit = advice.limits[-1]
    assert (limit.name, limit.holds) == ("storage", False)
    assert "3 retained checkpoints and one that is being written take 4 GB; 3.5 GB are free" in advice.notes[-1]
    assert advise(replace(BASE, needs=replace(needs, space_bytes=4 * 10**9))).limits[-1].holds


def test_what_is_never_removed_fills_the_space():
    """Where no checkpoint was removed the advice says after how many saves and how long the space is full."""
    needs = Needs(checkpoint_bytes=10**9, retained_generations=3, retires=False, space_bytes=10**10)
    limit = advise(replace(BASE, needs=needs)).limits[-1]
    assert limit.holds
    assert "full after 10 saves" in limit.sentence


def test_checkpoints_kept_by_age():
    """A day of checkpoints in the space of eleven, one of them being written, needs an interval of a tenth of a day."""
    needs = Needs(checkpoint_bytes=10**9, space_bytes=11 * 10**9, keep_seconds=24 * HOUR)
    advice = advise(replace(BASE, needs=needs))
    assert advice.seconds == pytest.approx(2.4 * HOUR - 5.0)
    hopeless = advise(replace(BASE, needs=replace(needs, space_bytes=10**9)))
    assert "never fit" in hopeless.notes[-1]
    assert hopeless.seconds == hopeless.optimum_seconds


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
    assert any(note.startswith("Young's formula isn't valid here") and "68.1% above" in note for note in advice.notes)
    assert any(note.startswith("Daly's formula isn't valid here") and "1.8% below" in note for note in advice.notes)


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
