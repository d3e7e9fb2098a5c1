"""Which input the expected overhead hangs on: its elasticity to each, with the interval chosen anew for every change."""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec.structs import replace

from chaosckpt.measure.interval_inputs import IntervalInputs
from chaosckpt.measure.measurement import Elasticity
from chaosckpt.measure.overhead import overhead

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


def _slowdown(inputs: IntervalInputs, factor: float) -> IntervalInputs:
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
    "slower steps during a save": _slowdown,
    "completion after the stall": _completion,
    "restart": _restart,
    "tolerated loss": _loss,
    "time for which checkpoints are kept": _space,
    FAILURE_RATE: _mean,
}
"""Each input by its name, with how it is scaled."""
