"""How often a job fails: a mean that someone names, or failures that were counted over a time, with what so few can tell."""

from __future__ import annotations

import math

from chaosckpt.errors import UsageError
from chaosckpt.measure.measurement import FailureRate

GARWOOD = "F. Garwood, Fiducial limits for the Poisson distribution, 1936, doi:10.1093/biomet/28.3-4.437"
_TAIL = 0.05
"""On either side, so that 90 % lie between."""
_NOTHING = 1e-17
ASSUMED_SECONDS = 24 * 3600.0
"""Where nobody says how often the job fails: once a day."""


def given(mtbf_seconds: float) -> FailureRate:
    """The mean time between failures of the whole job, as someone names it. Raises UsageError unless it is above 0 and finite."""
    return FailureRate(mtbf_seconds=_positive("the mean time between failures", mtbf_seconds))


def assumed() -> FailureRate:
    """Nobody named one."""
    return FailureRate(mtbf_seconds=ASSUMED_SECONDS, source="assumed")


def counted(failures: int, observed_seconds: float) -> FailureRate:
    """So many failures of the whole job in so many seconds, with the bounds that they allow (Garwood's, exact for a Poisson count).

    Without any failure the mean is the one at which having seen none is as likely as having seen some, and has no upper bound.
    Raises UsageError for a negative count or a time that is not above 0 and finite.
    """
    observed = _positive("the time in which failures were counted", observed_seconds)
    if failures < 0:
        raise UsageError(f"the number of failures is {failures}, but must be 0 or more")
    expected = float(failures) if failures else math.log(2)
    return FailureRate(
        mtbf_seconds=observed / expected,
        low_seconds=observed / _expected(failures, _TAIL),
        high_seconds=observed / _expected(failures - 1, 1 - _TAIL) if failures else None,
        failures=failures,
        observed_seconds=observed,
        source="counted",
    )


def _positive(what: str, seconds: float) -> float:
    if not 0 < seconds < math.inf:
        raise UsageError(f"{what} is {seconds:g} seconds, but must be finite and above 0, such as 24 h")
    return seconds


def _expected(count: int, probability: float) -> float:
    """The mean of a Poisson distribution in which `count` or fewer have this probability; falls as the probability grows."""
    low, high = 0.0, count + 10 * math.sqrt(count + 10) + 10
    while low < (middle := (low + high) / 2) < high:
        if _at_most(count, middle) > probability:
            low = middle
        else:
            high = middle
    return high


def _at_most(count: int, mean: float) -> float:
    """The probability of `count` or fewer in a Poisson distribution, summed from its largest term to both sides while terms matter."""
    if count < 0:
        return 0.0
    if mean == 0:
        return 1.0
    largest = min(count, int(mean))
    first = math.exp(largest * math.log(mean) - mean - math.lgamma(largest + 1))
    total, term, number = first, first, largest
    while number > 0 and term > _NOTHING * total:
        term *= number / mean
        total += term
        number -= 1
    term, number = first, largest
    while number < count and term > _NOTHING * total:
        number += 1
        term *= mean / number
        total += term
    return min(1.0, total)
