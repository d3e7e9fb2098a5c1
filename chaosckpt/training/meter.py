"""The meter: trains and saves by a given clock, and keeps what each save cost the rank that it runs on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol

from torch import Tensor
from torch.distributed.tensor import DTensor

from chaosckpt.training.loop import Job, train_step
from chaosckpt.training.metered import (
    Counters,
    LevelAt,
    MeteredBacklog,
    MeteredSave,
    OutstandingSaves,
    Overlap,
    StageTook,
    TierSize,
)
from chaosckpt.training.state import TrainState

MOST_STEPS_BESIDE = 10_000
"""Training steps beside one save, at most: a save that is not finished by then is awaited."""


class Waits(Protocol):
    """A save under way, as chaosckpt.targets.api.Pending. `wait` returns what has `level` and `then`."""

    def wait(self) -> Any: ...


class Saves(Protocol):
    """What the meter asks of a target, as chaosckpt.targets.api.Target."""

    def save(self, state: TrainState, step: int) -> Any: ...

    def retained(self) -> Sequence[int] | None: ...

    def close(self) -> None: ...


class Instruments(Protocol):
    """What a rank reads beside the clock; none of it is read while the clock counts. Bytes are of the rank and what it started."""

    def counters(self) -> Counters: ...

    def resident_bytes(self) -> int: ...

    def reset_peak(self) -> None: ...

    def peak_bytes(self) -> int: ...

    def storage(self) -> tuple[TierSize, ...]: ...


class Meter:
    """One rank's meter. Every rank calls the same methods with the same arguments, at the same point of training.

    `agree` returns the largest of the ranks' values on every rank; it waits for all. `finished` tells of a save, without waiting,
    whether it is. `train` trains one step. `marks` is where the target's stage marks arrive, each with its time.
    """

    def __init__(
        self,
        job: Job,
        target: Saves,
        *,
        clock: Callable[[], float],
        instruments: Instruments,
        finished: Callable[[Any], bool],
        agree: Callable[[float], float] = lambda value: value,
        train: Callable[[Job], object] = train_step,
        marks: list[tuple[str, float]] | None = None,
    ) -> None:
        self.job = job
        self.target = target
        self.step_seconds: list[float] = []
        """Of every step so far with no save under way."""
        self._clock = clock
        self._instruments = instruments
        self._finished = finished
        self._agree = agree
        self._train = train
        self._marks = [] if marks is None else marks

    def saves(self, count: int, steps: int = 1) -> Iterator[MeteredSave]:
        """So many saves one after another, each after some training steps and awaited before training goes on."""
        for _ in range(count):
            self.train(steps)
            yield self.save()

    def train(self, steps: int) -> None:
        """Train with no save under way, and keep how long each step took."""
        self.step_seconds += [self._step() for _ in range(steps)]

    def save(self) -> MeteredSave:
        """Save, await it to its last level, and look at what lies there then."""
        step, instruments = self.job.state.step, self._instruments
        self._together()
        resident = instruments.resident_bytes()
        instruments.reset_peak()
        self._marks.clear()
        before = instruments.counters()
        began = self._clock()
        pending = self.target.save(self.job.state, step)
        stalled = self._clock()
        asynchronous = not self._finished(pending)
        levels = self._await(pending, began)
        completed = self._clock()
        stages = stages_between(self._marks, completed)
        io, peak = instruments.counters() - before, instruments.peak_bytes()
        self._together()
        retained = self.target.retained()
        return MeteredSave(
            step=step,
            began_seconds=began,
            stall_seconds=stalled - began,
            completion_seconds=completed - began,
            levels=levels,
            stages=stages,
            asynchronous=asynchronous,
            io=io,
            resident_before_bytes=resident,
            resident_after_bytes=instruments.resident_bytes(),
            peak_resident_bytes=peak,
            tiers=instruments.storage(),
            retained=None if retained is None else len(retained),
        )

    def overlap(self, completion_seconds: float) -> Overlap:
        """Save, and train until it is finished. A save that can't tell is awaited after as many steps as it should take."""
        planned = self._steps_in(completion_seconds)
        self.train(1)
        self._together()
        began = self._clock()
        pending = self.target.save(self.job.state, self.job.state.step)
        stall = self._clock() - began
        seconds: list[float] = []
        completed = began
        every_tells = True
        while pending is not None:
            tells = hasattr(pending, "done") or self._finished(pending)
            every_tells = every_tells and tells
            most = MOST_STEPS_BESIDE if tells else planned
            own = self._finished(pending)
            if own:
                completed = self._clock()
            for _ in range(most):
                if not self._agree(float(not own)):
                    break
                seconds.append(self._step())
                if not own and (own := self._finished(pending)):
                    completed = self._clock()
            ack = pending.wait()
            if not own:
                completed = self._clock()
            pending = ack.then
        return Overlap(
            began_seconds=began,
            stall_seconds=stall,
            completion_seconds=completed - began,
            step_seconds=tuple(seconds),
            tells=every_tells,
        )

    def backlog(self, completion_seconds: float, bound: int, saves: int, step_seconds: float = 0.0) -> MeteredBacklog:
        """Save at an interval of half of what a save takes, with at most `bound` under way, as the training script does it.

        `step_seconds` is how long a step takes beside a save, where that is longer than alone. An interval has one step at least.
        """
        step = max(self._agree(step_seconds), self._step_alone())
        steps = max(1, math.floor(self._agree(completion_seconds) / 2 / step))
        return Pile(self, steps, bound).run(saves)

    def _steps_in(self, seconds: float) -> int:
        """How many training steps so many seconds hold, the same on every rank; at least one."""
        return max(1, math.ceil(self._agree(seconds) / self._step_alone()))

    def _step_alone(self) -> float:
        """How long a step takes with no save under way, on the slowest rank."""
        ordered = sorted(self.step_seconds)
        return self._agree(ordered[len(ordered) // 2]) or 1e-9

    def _step(self) -> float:
        began = self._clock()
        self._train(self.job)
        return self._clock() - began

    def _together(self) -> None:
        """Wait for all ranks, so that no rank's time counts what another one did before."""
        self._agree(0.0)

    def _await(self, pending: Any, began: float) -> tuple[LevelAt, ...]:
        levels = []
        while pending is not None:
            ack = pending.wait()
            levels.append(LevelAt(ack.level, self._clock() - began))
            pending = ack.then
        return tuple(levels)


class Pile:
    """Saves that are begun before the earlier ones are finished, and what that does to training."""

    def __init__(self, meter: Meter, steps: int, bound: int) -> None:
        self._meter = meter
        self._steps = steps
        self._bound = bound
        self._outstanding: list[Any] = []
        self._timeline: list[OutstandingSaves] = []
        self._began = 0.0

    def run(self, saves: int) -> MeteredBacklog:
        """So many saves, then the wait for the last of them."""
        clock = self._meter._clock
        intervals: list[float] = []
        stalls: list[float] = []
        waits: list[float] = []
        before: list[int] = []
        self._meter._together()
        self._began = clock()
        for number in range(saves):
            trained = clock()
            for _ in range(self._steps):
                self._meter._step()
                self._look()
            if number:
                intervals.append(clock() - trained)
            waits.append(self._make_room())
            before.append(self._look())
            stalls.append(self._save())
        drained = clock()
        while self._outstanding:
            self._await_oldest()
        return MeteredBacklog(
            steps=self._steps,
            interval_seconds=tuple(intervals),
            stall_seconds=tuple(stalls),
            waited_seconds=tuple(waits),
            before=tuple(before),
            drained_seconds=clock() - drained,
            timeline=tuple(self._timeline),
        )

    def _save(self) -> float:
        meter = self._meter
        began = meter._clock()
        pending = meter.target.save(meter.job.state, meter.job.state.step)
        stall = meter._clock() - began
        self._outstanding.append(pending)
        self._look()
        return stall

    def _make_room(self) -> float:
        clock = self._meter._clock
        began = clock()
        while len(self._outstanding) >= self._bound:
            self._await_oldest()
        return clock() - began

    def _await_oldest(self) -> None:
        ack = self._outstanding.pop(0).wait()
        if ack.then is not None:
            self._outstanding.append(ack.then)
        self._look()

    def _look(self) -> int:
        """How many are under way now; noted where that has changed."""
        saves = sum(1 for pending in self._outstanding if not self._meter._finished(pending))
        if not self._timeline or self._timeline[-1].saves != saves:
            self._timeline.append(OutstandingSaves(self._meter._clock() - self._began, saves))
        return saves


def stages_between(marks: Sequence[tuple[str, float]], end: float) -> tuple[StageTook, ...]:
    """How long each stage took, in the order in which they began: a stage lasts until the next mark, the last one until `end`."""
    took: dict[str, float] = {}
    for (stage, began), (_, over) in pairwise([*marks, ("", end)]):
        took[stage] = took.get(stage, 0.0) + over - began
    return tuple(StageTook(stage, seconds) for stage, seconds in took.items())


def logical_bytes(state: TrainState) -> tuple[int, int]:
    """Bytes of the tensors that a checkpoint has to hold: those that all ranks share, counted once, and this rank's own."""
    shared: list[Tensor] = [*state.model.parameters(), *state.model.buffers()]
    for moments in state.optimizer.state.values():
        shared += [value for value in moments.values() if isinstance(value, Tensor)]
    own = [*state.rng.state_dict().values(), state.stamp]
    return sum(map(_bytes, shared)), sum(map(_bytes, own))


def _bytes(tensor: Tensor) -> int:
    """The whole tensor's bytes, also where only a part of it lies on this rank."""
    count = tensor.numel() if not isinstance(tensor, DTensor) else math.prod(tensor.shape)
    return count * tensor.element_size()
