"""What a job that saves and fails is expected to lose: an exact model for failures at random, and the classical formulas beside it.

Failures strike at any moment with the same probability (exponential times between them, mean `mtbf_seconds`), during saves and
restarts too. Each ends the job; a restart then goes on from the newest checkpoint that was complete when the failure struck.
Training for an interval τ, then a save: it stalls training for s, costs w more by slower steps while it is written, and is complete C
after it began. With δ = s + w, M the mean and R the restart, the time from one complete checkpoint to the next is expected to be

    M · (1 - e^(-P/M)) · e^((τ + C + R)/M),   P = max(τ + δ, C)

P is longer than τ + δ where saves take longer than the interval, so that each waits for the one before. With C = δ this is Daly's exact
cost, M · e^(R/M) · (e^((τ + δ)/M) - 1). A later completion multiplies the cost and leaves the best interval where it is.
"""

from __future__ import annotations

import math

import msgspec

YOUNG = "J. W. Young, A first order approximation to the optimum checkpoint interval, 1974, doi:10.1145/361147.361115"
DALY = (
    "J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, 2006, "
    "doi:10.1016/j.future.2004.11.016"
)
_LARGEST_EXPONENT = 600.0
"""Costs beyond e^600 are all the same, and infinity can't be written as JSON."""
_SHORT_SAVE = 0.1
"""Young's first order needs a save that is much shorter than the interval: at most a tenth of it."""


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """What one save and one restart cost, in seconds, and how often the job fails.

    `write_behind_seconds` is the time from the end of the stall until the save is complete, `slowdown_seconds` the training time that
    slower steps lose during it.
    """

    mtbf_seconds: float
    stall_seconds: float
    write_behind_seconds: float = 0.0
    slowdown_seconds: float = 0.0
    restart_seconds: float = 0.0

    @property
    def lost_seconds(self) -> float:
        """Training time that one save takes away: δ."""
        return self.stall_seconds + min(self.slowdown_seconds, self.write_behind_seconds)

    @property
    def completion_seconds(self) -> float:
        """From the beginning of a save until it is complete: C."""
        return self.stall_seconds + self.write_behind_seconds


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the expected overhead, each as a share of the time of training."""

    saving: float
    lost_work: float
    restart: float

    @property
    def overhead(self) -> float:
        return self.saving + self.lost_work + self.restart


def shares(costs: Costs, interval_seconds: float) -> Shares:
    """What saving, work done twice and restarts are expected to cost at this interval (above 0)."""
    mean, interval = costs.mtbf_seconds, interval_seconds
    period = max(interval + costs.lost_seconds, costs.completion_seconds)
    exponent = (interval + costs.completion_seconds + costs.restart_seconds) / mean
    cycle = mean * -math.expm1(-period / mean) * math.exp(min(exponent, _LARGEST_EXPONENT))
    # Failures strike at the rate 1/M all the time; each restart lasts R, or until the next failure strikes it.
    restarts = cycle * -math.expm1(-costs.restart_seconds / mean)
    saving = period - interval
    return Shares(
        saving=saving / interval,
        lost_work=max(0.0, cycle - restarts - period) / interval,
        restart=restarts / interval,
    )


def overhead(costs: Costs, interval_seconds: float) -> float:
    """The expected time for something else than training, over the time of training."""
    return shares(costs, interval_seconds).overhead


def optimum(costs: Costs) -> float:
    """The interval with the least expected overhead, in seconds; 0 where saves cost nothing.

    While saves don't wait for one another it solves (1 - τ/M) · e^(τ/M + δ/M) = 1: Lambert's function, found here by bisection.
    Where the interval found is so short that they would wait, the least cost lies where they just don't.
    """
    mean, behind = costs.mtbf_seconds, costs.completion_seconds - costs.lost_seconds
    free = mean * _share_of_mean(costs.lost_seconds / mean)
    return free if free >= behind else min(behind, mean)


def _share_of_mean(save: float) -> float:
    """The root x in [0, 1) of ln(1 - x) + x + save; the left side falls from `save` to minus infinity."""
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        if math.log1p(-middle) + middle + save > 0:
            low = middle
        else:
            high = middle
    return low if save > 0 else 0.0


def young(costs: Costs) -> float:
    """Young's interval, √(2 δ M), in seconds of training between two saves."""
    return math.sqrt(2 * costs.lost_seconds * costs.mtbf_seconds)


def young_holds(costs: Costs) -> bool:
    """Young's terms of higher order may be left out: a save is much shorter than the interval, and that than the mean."""
    return costs.lost_seconds <= _SHORT_SAVE * young(costs)


def daly(costs: Costs) -> float:
    """Daly's interval of higher order, in seconds of training between two saves."""
    save, mean = costs.lost_seconds, costs.mtbf_seconds
    if save >= 2 * mean:
        return mean
    ratio = save / (2 * mean)
    return math.sqrt(2 * save * mean) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - save


def daly_holds(costs: Costs) -> bool:
    """A save takes less than half of the mean time between failures: there the series is exact to some per mille."""
    return costs.lost_seconds < costs.mtbf_seconds / 2
