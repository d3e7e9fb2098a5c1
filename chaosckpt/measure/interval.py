"""The interval to save at: from measured costs, the failure rate and the limits to the least expected overhead."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from chaosckpt.errors import UsageError
from chaosckpt.measure.limits import Bounds, Needs, bounds, storage_limit, worst_loss
from chaosckpt.measure.measurement import (
    Capacity,
    Contention,
    Elasticity,
    FailureRate,
    IntervalAdvice,
    Limit,
    RankFigures,
    Restart,
    Spread,
    slowest,
)
from chaosckpt.measure.overhead import Costs, daly, daly_holds, optimum, overhead, shares, young, young_holds

SHORTEST_SECONDS = 1e-6
"""Where saves cost nothing at all, and no training step is known: an interval has to be more than nothing."""


class IntervalInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds are medians of the slowest rank, save for `slowest_completion_seconds`, the longest completion that was seen.

    The backlog limit takes that one (default: the median). `slowdown_seconds` is training time lost to slower steps.
    """

    failure_rate: FailureRate
    stall_seconds: float
    completion_seconds: float
    restart_seconds: float
    slowdown_seconds: float = 0.0
    slowest_completion_seconds: float | None = None
    step_seconds: float | None = None
    needs: Needs = Needs()

    def costs(self) -> Costs:
        """As the model of the expected overhead takes them. A completion is never shorter than the stall."""
        return Costs(
            mtbf_seconds=self.failure_rate.mtbf_seconds,
            stall_seconds=self.stall_seconds,
            write_behind_seconds=max(0.0, self.completion_seconds - self.stall_seconds),
            slowdown_seconds=self.slowdown_seconds,
            restart_seconds=self.restart_seconds,
        )

    def bounds(self) -> Bounds:
        """Where the interval may lie."""
        costs = self.costs()
        completion = max(self.slowest_completion_seconds or 0.0, costs.completion_seconds)
        return bounds(costs, self.needs, completion, self.step_seconds or None, SHORTEST_SECONDS)

    def best(self) -> float:
        """The interval of the least expected overhead that the bounds allow, in seconds.

        The overhead falls up to its optimum and rises from there, so that this is the allowed interval nearest to the optimum.
        """
        return self.bounds().nearest(optimum(self.costs()))


def check(inputs: IntervalInputs) -> None:
    """Raises UsageError for a negative or infinite time, and for a mean or a tolerated loss that is not above 0."""
    for name in ("stall_seconds", "completion_seconds", "restart_seconds", "slowdown_seconds"):
        value = getattr(inputs, name)
        if not 0 <= value < math.inf:
            raise UsageError(f"{name} is {value:g}, but a measured time must be finite and 0 or more")
    asked = {
        "mean time between failures": inputs.failure_rate.mtbf_seconds,
        "tolerated loss": inputs.needs.tolerated_loss_seconds,
        "time for which checkpoints are kept": inputs.needs.keep_seconds,
    }
    for what, value in asked.items():
        if value is not None and not 0 < value < math.inf:
            raise UsageError(f"the {what} is {value:g} seconds, but must be finite and above 0")


def measured_inputs(
    figures: Sequence[RankFigures],
    restarts: Iterable[Restart],
    capacity: Capacity,
    failure_rate: FailureRate,
    contention: Iterable[Contention] = (),
    *,
    tolerated_loss_seconds: float | None = None,
    keep_seconds: float | None = None,
    asynchronous: bool = True,
    left_bytes: int = 0,
) -> IntervalInputs:
    """The inputs that a measurement yields: the slowest rank's medians, and the restart with a cold cache where there is one.

    A save that was slower beside training than alone counts with that time; the longest completion is that beside neighbours, too, who
    come and go. Without a restart its cost is taken for 0. Where saves aren't `asynchronous` they are complete when they return: the
    moment until that is observed writes nothing behind.
    """
    completion = [figure.completion_seconds for figure in figures]
    beside = [figure.completion_while_training_seconds for figure in figures]
    observed = [spread for spread in beside if spread is not None]
    completions = [slowest(completion), *([slowest(observed)] if observed else [])]
    by_cache = {restart.cache: restart.total_seconds.median for restart in restarts}
    stall_seconds = slowest(figure.stall_seconds for figure in figures).median
    return IntervalInputs(
        failure_rate=failure_rate,
        stall_seconds=stall_seconds,
        completion_seconds=max(spread.median for spread in completions) if asynchronous else stall_seconds,
        restart_seconds=by_cache.get("cold", by_cache.get("warm", 0.0)),
        slowdown_seconds=max(_slowdown(figure) for figure in figures),
        slowest_completion_seconds=max(
            *(spread.high for spread in completions), *(entry.completion_seconds.high for entry in contention), 0.0
        ),
        step_seconds=slowest(figure.step_seconds for figure in figures).median,
        needs=Needs(
            tolerated_loss_seconds=tolerated_loss_seconds,
            checkpoint_bytes=capacity.allocated_bytes,
            retained_generations=capacity.retained_generations,
            retires=capacity.retires,
            temporary_bytes=capacity.peak_temporary_bytes,
            left_bytes=left_bytes,
            space_bytes=capacity.free_bytes,
            keep_seconds=keep_seconds,
        ),
    )


def _slowdown(figure: RankFigures) -> float:
    """Training time that a rank loses while one save is written: the share by which steps are slower, over the time of writing."""
    during, written = figure.step_seconds_during_save, figure.completion_while_training_seconds
    if during is None or written is None or during.median <= 0:
        return 0.0
    slower = 1 - figure.step_seconds.median / during.median
    return max(0.0, slower) * max(0.0, _behind(written, figure.stall_seconds))


def _behind(completion: Spread, stall: Spread) -> float:
    return completion.median - stall.median


FAILURE_RATE = "mean time between failures"
_STEP = 1e-4
"""By which share an input is changed to see what that changes."""
_NEGLIGIBLE = 1e-3


def elasticities(inputs: IntervalInputs) -> tuple[Elasticity, ...]:
    """By how many percent the least overhead changes for a percent of each input, the strongest first."""

    def least(changed: IntervalInputs) -> float:
        return max(overhead(changed.costs(), changed.best()), 1e-300)

    found = []
    for name, scaled in _SCALED.items():
        change = math.log(least(scaled(inputs, 1 + _STEP)) / least(scaled(inputs, 1 - _STEP)))
        found.append(Elasticity(name=name, value=change / math.log((1 + _STEP) / (1 - _STEP))))
    return tuple(sorted(found, key=lambda entry: -abs(entry.value)))


def dominant(weights: tuple[Elasticity, ...]) -> str:
    """The strongest input that the job's owner can change.

    The overhead is a ratio of times, so that the mean time between failures weighs as much as all the others together. To name it
    would say nothing; it is named where nothing else weighs.
    """
    changeable = (entry for entry in weights if entry.name != FAILURE_RATE and abs(entry.value) > _NEGLIGIBLE)
    return next((entry.name for entry in changeable), FAILURE_RATE)


def _stall(inputs: IntervalInputs, factor: float) -> IntervalInputs:
    """A longer stall makes the completion later by as much: what is written behind it takes what it took."""
    later, longest = inputs.stall_seconds * (factor - 1), inputs.slowest_completion_seconds
    return replace(
        inputs,
        stall_seconds=inputs.stall_seconds * factor,
        completion_seconds=max(inputs.completion_seconds, inputs.stall_seconds) + later,
        slowest_completion_seconds=None if longest is None else longest + later,
    )


def _completion(inputs: IntervalInputs, factor: float) -> IntervalInputs:
    stall, longest = inputs.stall_seconds, inputs.slowest_completion_seconds

    def scaled(completion: float) -> float:
        return stall + max(0.0, completion - stall) * factor

    return replace(
        inputs,
        completion_seconds=scaled(inputs.completion_seconds),
        slowest_completion_seconds=None if longest is None else scaled(longest),
    )


def _slower(inputs: IntervalInputs, factor: float) -> IntervalInputs:
    return replace(inputs, slowdown_seconds=inputs.slowdown_seconds * factor)


def _restart(inputs: IntervalInputs, factor: float) -> IntervalInputs:
    return replace(inputs, restart_seconds=inputs.restart_seconds * factor)


def _loss(inputs: IntervalInputs, factor: float) -> IntervalInputs:
    tolerated = inputs.needs.tolerated_loss_seconds
    if tolerated is None:
        return inputs
    return replace(inputs, needs=replace(inputs.needs, tolerated_loss_seconds=tolerated * factor))


def _space(inputs: IntervalInputs, factor: float) -> IntervalInputs:
    kept = inputs.needs.keep_seconds
    return inputs if kept is None else replace(inputs, needs=replace(inputs.needs, keep_seconds=kept * factor))


def _mean(inputs: IntervalInputs, factor: float) -> IntervalInputs:
    rate = inputs.failure_rate
    return replace(inputs, failure_rate=replace(rate, mtbf_seconds=rate.mtbf_seconds * factor))


_SCALED: dict[str, Callable[[IntervalInputs, float], IntervalInputs]] = {
    "stall": _stall,
    "slower steps during a save": _slower,
    "completion after the stall": _completion,
    "restart": _restart,
    "tolerated loss": _loss,
    "time for which checkpoints are kept": _space,
    FAILURE_RATE: _mean,
}
"""Each input by its name, with how it is scaled."""


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
        notes.append(
            "no failure rate was given, so one failure a day is assumed; name the mean time between failures with --mtbf"
        )
    if costs.lost_seconds and not young_holds(costs):
        off = _off(young(costs), best)
        notes.append(
            f"Young's formula does not apply, because a save is not much shorter than the interval: it is {off} the optimum"
        )
    if costs.lost_seconds and not daly_holds(costs):
        off = _off(daly(costs), best)
        notes.append(
            f"Daly's formula does not apply, because a save takes half the mean time between failures: it is {off} the optimum"
        )
    if costs.restart_seconds > costs.mtbf_seconds:
        notes.append(
            "a restart takes longer than the mean time between failures, so most restarts are interrupted by a failure"
        )
    if overhead(costs, seconds) > _STILL:
        notes.append("the job makes almost no progress: less than a tenth of its time is training")
    notes += [limit.sentence for limit in limits if not limit.holds]
    return tuple(notes)


def _off(found: float, right: float) -> str:
    share = found / right - 1
    return f"{abs(share):.1%} {'above' if share > 0 else 'below'}"
