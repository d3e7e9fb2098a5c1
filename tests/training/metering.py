"""A clock that only moves when it is told to, and targets whose costs are known to the last digit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from chaosckpt.engine.rank.instruments import tier_size
from chaosckpt.model.scenario import WorkloadSettings
from chaosckpt.training.loop import Job, build
from chaosckpt.training.meter import Meter
from chaosckpt.training.metered import Counters, TierSize


class Clock:
    """All durations are multiples of an eighth of a second, so that sums and differences of floats are exact."""

    def __init__(self) -> None:
        self.now = 1024.0

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


class Acknowledged(NamedTuple):
    """What a save's `wait` returns."""

    level: str = "shared"
    then: Any = None


class Costs(NamedTuple):
    """What one save costs. `copies` are the bytes written for each byte that is kept, `lost_bytes` stay in a file that nobody knows.

    `grown_bytes` is memory that is never given back, `staged_bytes` memory that is taken during `save` only.
    """

    stall_seconds: float = 0.0
    completion_seconds: float = 0.0
    kept_bytes: int = 1000
    copies: int = 1
    lost_bytes: int = 0
    staged_bytes: int = 0
    grown_bytes: int = 0
    keep: int = 2
    tells: bool = True


class Saving:
    """A save that is finished at a known time."""

    def __init__(self, clock: Clock, at: float) -> None:
        self._clock = clock
        self._at = at

    def wait(self) -> Acknowledged:
        self._clock.now = max(self._clock.now, self._at)
        return Acknowledged()


class TellingSaving(Saving):
    """The same, and it tells."""

    def done(self) -> bool:
        return self._clock.now >= self._at


class Known:
    """A target of known costs that writes real files, and the instruments that read them and a memory of known size."""

    def __init__(self, clock: Clock, root: Path, costs: Costs) -> None:
        self.clock = clock
        self.root = root
        self.costs = costs
        self.memory = 50_000
        self.peak = self.memory
        self.io = Counters()
        self.closed = False

    def save(self, state: object, step: int) -> Saving:
        costs = self.costs
        path = self.root / f"step-{step:06d}"
        for _copy in range(costs.copies):
            path.with_suffix(".tmp").write_bytes(bytes(costs.kept_bytes))
            self.io = Counters(
                write_bytes=self.io.write_bytes + costs.kept_bytes,
                write_chars=self.io.write_chars + costs.kept_bytes,
                write_operations=self.io.write_operations + 1,
            )
        path.with_suffix(".tmp").rename(path)
        for old in self._kept()[: -costs.keep]:
            (self.root / f"step-{old:06d}").unlink()
        if costs.lost_bytes:
            (self.root / f"lost-{step:06d}").write_bytes(bytes(costs.lost_bytes))
        self.memory += costs.grown_bytes
        self.peak = max(self.peak, self.memory + costs.staged_bytes)
        at = self.clock.now + costs.completion_seconds
        self.clock.pass_(costs.stall_seconds)
        return (TellingSaving if costs.tells else Saving)(self.clock, at)

    def _kept(self) -> list[int]:
        return sorted(int(path.name[5:]) for path in self.root.glob("step-*"))

    def retained(self) -> Sequence[int]:
        return self._kept()

    def close(self) -> None:
        self.closed = True

    # The instruments

    def counters(self) -> Counters:
        return self.io

    def resident_bytes(self) -> int:
        return self.memory

    def reset_peak(self) -> None:
        self.peak = self.memory

    def peak_bytes(self) -> int:
        return self.peak

    def storage(self) -> tuple[TierSize, ...]:
        return (tier_size("shared", str(self.root)),)


def finished(pending: Saving) -> bool:
    return isinstance(pending, TellingSaving) and pending.done()


def small_job() -> Job:
    return build(WorkloadSettings(hidden=4, layers=1), rank=0, world_size=1, attempt=0)


def meter_of(known: Known, step_seconds: float, train: Callable[[Job], object] | None = None) -> Meter:
    """A meter by the target's clock, for which every training step takes so long."""
    clock = known.clock

    def step(job: Job) -> None:
        job.state.step += 1
        clock.pass_(step_seconds)

    return Meter(small_job(), known, clock=clock, instruments=known, finished=finished, train=train or step)
