"""How often a job fails, and what a few counted failures tell of it."""

from __future__ import annotations

import math
import random

import pytest

from chaosckpt.errors import UsageError
from chaosckpt.measure.failure_rate import assumed, counted, given


def test_a_mean_that_is_named():
    """A mean that is named is taken as it is, without bounds."""
    rate = given(3600.0)
    assert (rate.mtbf_seconds, rate.low_seconds, rate.high_seconds, rate.source) == (3600.0, None, None, "given")
    assert assumed().source == "assumed"


@pytest.mark.parametrize(
    ("failures", "low", "high"), [(1, 0.0513, 4.744), (3, 0.8177, 7.754), (10, 5.425, 16.962), (100, 84.14, 118.08)]
)
def test_bounds_as_tabulated(failures, low, high):
    """The bounds of a Poisson mean are those of the tables (Garwood's 90 %)."""
    rate = counted(failures, 1.0)
    assert rate.mtbf_seconds == pytest.approx(1 / failures)
    assert rate.high_seconds == pytest.approx(1 / low, rel=1e-3)
    assert rate.low_seconds == pytest.approx(1 / high, rel=1e-3)


def test_many_failures():
    """A million failures bound the mean as the normal distribution does, and don't take long to."""
    rate = counted(1_000_000, 1.0)
    assert rate.low_seconds == pytest.approx(1e-6 * (1 - 1.645e-3), rel=1e-5)
    assert rate.high_seconds == pytest.approx(1e-6 * (1 + 1.645e-3), rel=1e-5)


def test_no_failure_yet():
    """Without a failure the mean is at least a third of the time with 95 % confidence, and has no upper bound."""
    rate = counted(0, 300.0)
    assert rate.low_seconds == pytest.approx(300 / -math.log(0.05))
    assert rate.mtbf_seconds == pytest.approx(300 / math.log(2))
    assert rate.high_seconds is None


def test_bounds_hold_as_often_as_they_say():
    """Of many simulated observations of the same job, at least nine in ten have the true mean within their bounds."""
    generator = random.Random(11)
    within = 0
    for _ in range(500):
        failures, passed = -1, 0.0
        while passed < 7.0:
            passed += generator.expovariate(1.0)
            failures += 1
        rate = counted(failures, 7.0)
        assert rate.low_seconds is not None
        within += rate.low_seconds <= 1.0 <= (rate.high_seconds or math.inf)
    assert within >= 450


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan])
def test_times_that_can_not_be(seconds):
    """A mean or a time of observation that isn't must be finite and above 0 is refused."""
    with pytest.raises(UsageError, match="must be finite and above 0"):
        given(seconds)
    with pytest.raises(UsageError, match="must be finite and above 0"):
        counted(1, seconds)


def test_negative_counts():
    """A negative number of failures is refused."""
    with pytest.raises(UsageError, match="failures is -1, but must be 0 or more"):
        counted(-1, 10.0)
