"""The expected overhead, against published figures and against a long job that is simulated event by event."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chaosckpt.measure.overhead import Costs, daly, daly_holds, optimum, overhead, shares, young, young_holds
from tests.measure.long_job import Job, failure_times

times = st.floats(1e-3, 1e3)
COSTS = st.builds(
    Costs,
    mtbf_seconds=st.floats(1.0, 1e6),
    stall_seconds=times,
    write_behind_seconds=st.one_of(st.just(0.0), times),
    slowdown_seconds=st.one_of(st.just(0.0), times),
    restart_seconds=times,
)


@pytest.mark.parametrize(("hours", "minutes"), [(24, 117), (6, 57)])
def test_daly_as_published(hours, minutes):
    """Dumps of 5 minutes on machines that fail once in 24 or 6 hours: Daly's paper prints 117 and 57 minutes under its figures."""
    assert round(daly(Costs(mtbf_seconds=hours * 60, stall_seconds=5))) == minutes


def test_daly_as_published_for_frequent_failures():
    """With a failure every 15 minutes and dumps of 5 the paper prints 9.1 minutes."""
    assert daly(Costs(mtbf_seconds=15, stall_seconds=5)) == pytest.approx(9.1, abs=0.05)


def test_young_as_published():
    """Young's interval is the root of twice the save times the mean, in the units of both."""
    assert young(Costs(mtbf_seconds=7200, stall_seconds=4)) == 240


def test_dalys_exact_cost():
    """Where a save is complete with its stall, the cost is Daly's M e^(R/M) (e^((τ + δ)/M) - 1) for τ of training."""
    cost = 3.0 * math.exp(0.4 / 3.0) * (math.exp((0.7 + 0.2) / 3.0) - 1)
    assert overhead(Costs(mtbf_seconds=3.0, stall_seconds=0.2, restart_seconds=0.4), 0.7) == pytest.approx(
        cost / 0.7 - 1
    )


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(save=st.floats(1e-9, 0.45))
def test_formulas_are_near_the_optimum_where_they_hold(save):
    """Where a formula claims to hold, its interval costs at most a hundredth more than the optimum."""
    costs = Costs(mtbf_seconds=1.0, stall_seconds=save)
    least = overhead(costs, optimum(costs))
    assert daly_holds(costs)
    assert overhead(costs, daly(costs)) <= least * 1.01
    if young_holds(costs):
        assert overhead(costs, young(costs)) <= least * 1.01


def test_formulas_say_where_they_do_not_hold():
    """A save of a tenth of the mean is too long for Young's first order, one of half of it for Daly's series."""
    assert not young_holds(Costs(mtbf_seconds=10.0, stall_seconds=1.0))
    assert not daly_holds(Costs(mtbf_seconds=10.0, stall_seconds=5.0))


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(costs=COSTS, factor=st.floats(0.01, 100.0))
def test_nothing_is_below_the_optimum(costs, factor):
    """No interval has a lower expected overhead than the optimum."""
    best = optimum(costs)
    longest = max(1.0, factor) * best + costs.completion_seconds + costs.restart_seconds
    assume(longest / costs.mtbf_seconds < 500)  # Beyond, every cost is given as the same huge number.
    assert overhead(costs, best * factor) >= overhead(costs, best) * (1 - 1e-9)


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(costs=COSTS, factor=st.floats(0.05, 20.0))
def test_the_parts_are_the_whole(costs, factor):
    """Saving, lost work and restarts are none of them negative, and with training they make up the whole time."""
    interval = optimum(costs) * factor
    found = shares(costs, interval)
    assert min(found.saving, found.lost_work, found.restart) >= 0
    period = max(interval + costs.lost_seconds, costs.completion_seconds)
    mean = costs.mtbf_seconds
    exponent = (interval + costs.completion_seconds + costs.restart_seconds) / mean
    if exponent < 500:
        whole = mean * (1 - math.exp(-period / mean)) * math.exp(exponent)
        assert found.overhead == pytest.approx(whole / interval - 1, rel=1e-6, abs=1e-6)


def test_saves_that_cost_nothing_are_made_all_the_time():
    """Without any cost of a save the optimum is no interval at all."""
    assert optimum(Costs(mtbf_seconds=100.0, stall_seconds=0.0)) == 0


CASES = {
    "synchronous": Job(interval=0, stall=0.02, completion=0.02, slowdown=0, restart=0.05),
    "long saves, long restarts": Job(interval=0, stall=0.15, completion=0.15, slowdown=0, restart=0.5),
    "asynchronous": Job(interval=0, stall=0.02, completion=0.09, slowdown=0, restart=0.02),
    "slower steps": Job(interval=0, stall=0.01, completion=0.09, slowdown=0.03, restart=0.05),
    "saves that wait": Job(interval=0, stall=0.002, completion=0.3, slowdown=0.001, restart=0.02),
}
FAILURES = failure_times(1.0, 6_000, seed=5)


@pytest.mark.parametrize("case", CASES)
def test_a_long_job_costs_what_is_expected(case):
    """A job simulated over 6,000 failures costs what the model expects, at the optimum and far from it."""
    job = CASES[case]
    costs = costs_of(job)
    for factor in (0.5, 1.0, 2.0):
        interval = optimum(costs) * factor
        assert at(job, interval).overhead(FAILURES) == pytest.approx(overhead(costs, interval), rel=0.04)


@pytest.mark.parametrize("case", CASES)
def test_a_long_job_costs_least_at_the_optimum(case):
    """The same failures cost the simulated job more at every shorter and longer interval that is tried."""
    job = CASES[case]
    best = optimum(costs_of(job))
    found = {factor: at(job, best * factor).overhead(FAILURES) for factor in (0.5, 0.8, 1.0, 1.25, 2.0)}
    assert min(found, key=found.__getitem__) == 1.0
    assert sorted(found, key=found.__getitem__)[1] in (0.8, 1.25), "cost rises on both sides"


def costs_of(job: Job) -> Costs:
    return Costs(
        mtbf_seconds=1.0,
        stall_seconds=job.stall,
        write_behind_seconds=job.completion - job.stall,
        slowdown_seconds=job.slowdown,
        restart_seconds=job.restart,
    )


def at(job: Job, interval: float) -> Job:
    return Job(
        interval=interval, stall=job.stall, completion=job.completion, slowdown=job.slowdown, restart=job.restart
    )
