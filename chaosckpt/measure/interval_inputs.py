"""What the advice about an interval is made from: costs as they were measured, how often the job fails, and what is asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from chaosckpt.errors import UsageError
from chaosckpt.measure.limits import Bounds, Needs, bounds
from chaosckpt.measure.measurement import Capacity, Contention, FailureRate, RankFigures, Restart, Spread, slowest
from chaosckpt.measure.overhead import Costs, optimum

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
            raise UsageError(f"{name} is {value:g}; a time that was measured is finite and not below 0")
    asked = {
        "mean time between failures": inputs.failure_rate.mtbf_seconds,
        "tolerated loss": inputs.needs.tolerated_loss_seconds,
        "time for which checkpoints are kept": inputs.needs.keep_seconds,
    }
    for what, value in asked.items():
        if value is not None and not 0 < value < math.inf:
            raise UsageError(f"the {what} is {value:g} seconds; it must be above 0 and finite")


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
