"""The interval to save at: the least expected overhead that the limits allow, with all that speaks for it and against it."""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec.structs import replace

from chaosckpt.measure.interval_inputs import SHORTEST_SECONDS, IntervalInputs, check
from chaosckpt.measure.limits import Bounds, storage_limit, worst_loss
from chaosckpt.measure.measurement import IntervalAdvice, Limit
from chaosckpt.measure.overhead import Costs, daly, daly_holds, optimum, overhead, shares, young, young_holds
from chaosckpt.measure.sensitivity import dominant, elasticities

_FLAT = 1.05
"""Intervals whose overhead is within this factor of the advised one's are as good to a person."""
_POINTS = 96
_REACH = 12.0
"""The curve reaches from a twelfth of the shortest of its marks to twelve times the longest."""
_HOPELESS = 20.0
"""In mean times between failures: no curve is drawn further, where the job practically stands still."""
_STILL = 10.0
"""An overhead of ten times the training."""
_ROUNDING = 1e-9


def advise(inputs: IntervalInputs) -> IntervalAdvice:
    """The advised interval. Raises UsageError for a negative or infinite time, or a mean or tolerated loss that is not above 0."""
    check(inputs)
    costs, allowed, seconds = inputs.costs(), inputs.bounds(), inputs.best()
    parts, weights = shares(costs, seconds), elasticities(inputs)
    limits = (*allowed.limits, *storage_limit(inputs.needs, seconds + costs.lost_seconds))
    rate = inputs.failure_rate
    return IntervalAdvice(
        seconds=seconds,
        overhead=parts.overhead,
        steps=_steps(seconds, inputs.step_seconds, allowed),
        optimum_seconds=optimum(costs),
        young_seconds=young(costs),
        young_holds=young_holds(costs),
        daly_seconds=daly(costs),
        daly_holds=daly_holds(costs),
        failure_rate=rate,
        mtbf_seconds=costs.mtbf_seconds,
        stall_seconds=costs.stall_seconds,
        slowdown_seconds=costs.lost_seconds - costs.stall_seconds,
        completion_seconds=costs.completion_seconds,
        restart_seconds=costs.restart_seconds,
        tolerated_loss_seconds=inputs.needs.tolerated_loss_seconds,
        worst_loss_seconds=worst_loss(costs, seconds),
        saving_share=parts.saving,
        lost_work_share=parts.lost_work,
        restart_share=parts.restart,
        near_seconds=_near(costs, seconds, allowed),
        low_seconds=_at_mean(inputs, rate.low_seconds),
        high_seconds=_at_mean(inputs, rate.high_seconds),
        limits=limits,
        curve=_curve(costs, seconds, allowed),
        elasticities=weights,
        dominant=dominant(weights),
        notes=_notes(costs, seconds, inputs, limits),
    )


def _at_mean(inputs: IntervalInputs, mtbf_seconds: float | None) -> float | None:
    if mtbf_seconds is None:
        return None
    return replace(inputs, failure_rate=replace(inputs.failure_rate, mtbf_seconds=mtbf_seconds)).best()


def _steps(seconds: float, step_seconds: float | None, allowed: Bounds) -> int | None:
    """The whole number of steps that comes nearest and keeps the bounds; the lower one where no number keeps both."""
    if not step_seconds:
        return None
    steps = max(1, round(seconds / step_seconds))
    if allowed.high_seconds is not None:
        steps = min(steps, math.floor(allowed.high_seconds / step_seconds * (1 + _ROUNDING)))
    return max(steps, math.ceil(allowed.low_seconds / step_seconds * (1 - _ROUNDING)), 1)


def _near(costs: Costs, seconds: float, allowed: Bounds) -> tuple[float, float]:
    """The ends of the stretch around the advised interval in which the overhead is at most a twentieth higher."""
    most = overhead(costs, seconds) * _FLAT

    def good(interval: float) -> bool:
        return overhead(costs, interval) <= most

    farthest = 1e6 * seconds if allowed.high_seconds is None else allowed.high_seconds
    return _edge(seconds, min(seconds, allowed.low_seconds), good), _edge(seconds, max(seconds, farthest), good)


def _edge(inside: float, outside: float, good: Callable[[float], bool]) -> float:
    """The last good place between a good one and an end, which is the answer if it is good itself."""
    if good(outside):
        return outside
    for _ in range(80):
        middle = math.sqrt(inside * outside)
        inside, outside = (middle, outside) if good(middle) else (inside, middle)
    return inside


def _curve(costs: Costs, seconds: float, allowed: Bounds) -> tuple[tuple[float, float], ...]:
    found = [seconds, optimum(costs), young(costs), daly(costs), allowed.low_seconds, allowed.high_seconds or 0.0]
    marks = [mark for mark in found if mark >= SHORTEST_SECONDS]
    first = min(marks) / _REACH
    last = max(min(max(marks) * _REACH, costs.mtbf_seconds * _HOPELESS), max(marks))
    spaced = [first * (last / first) ** (number / (_POINTS - 1)) for number in range(_POINTS)]
    return tuple((interval, overhead(costs, interval)) for interval in sorted({*spaced, *marks}))


def _notes(costs: Costs, seconds: float, inputs: IntervalInputs, limits: tuple[Limit, ...]) -> tuple[str, ...]:
    notes = []
    best = optimum(costs)
    if inputs.failure_rate.source == "assumed":
        notes.append("nobody said how often the job fails, so one failure a day is assumed: name the mean with --mtbf")
    if costs.lost_seconds and not young_holds(costs):
        off = _off(young(costs), best)
        notes.append(
            f"Young's formula isn't valid here, a save is not much shorter than the interval: {off} the optimum"
        )
    if costs.lost_seconds and not daly_holds(costs):
        off = _off(daly(costs), best)
        notes.append(
            f"Daly's formula isn't valid here, a save takes half the mean time between failures: {off} the optimum"
        )
    if costs.restart_seconds > costs.mtbf_seconds:
        notes.append("a restart takes longer than the job runs between two failures: most restarts fail themselves")
    if overhead(costs, seconds) > _STILL:
        notes.append("the job practically stands still: less than a tenth of its time is training")
    notes += [limit.sentence for limit in limits if not limit.holds]
    return tuple(notes)


def _off(found: float, right: float) -> str:
    share = found / right - 1
    return f"it is {abs(share):.1%} {'above' if share > 0 else 'below'}"
