"""Results: one number with its spread and its target, and the report that holds them all."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from importlib.metadata import version
from typing import Literal

import msgspec


class Settings(msgspec.Struct, frozen=True):
    """How much is measured. `repetitions` overrides each subject's own number; `quick` takes its smaller one."""

    quick: bool = False
    repetitions: int | None = None

    def times(self, usual: int, quick: int) -> int:
        """How often a subject is repeated that is so by default."""
        return self.repetitions or (quick if self.quick else usual)


class Target(msgspec.Struct, frozen=True):
    """What a number has to be: at most, or at least, so much."""

    sense: Literal["at most", "at least"]
    value: float

    def met(self, value: float) -> bool:
        return value <= self.value if self.sense == "at most" else value >= self.value

    def __str__(self) -> str:
        return f"{'<=' if self.sense == 'at most' else '>='} {self.value:g}"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One measured number. `low` and `high` bound what the single repetitions gave; `met` is None where nothing is demanded.

    `details` are the medians behind it, each named with its unit.
    """

    subject: str
    what: str
    value: float
    low: float
    high: float
    unit: str
    repetitions: int
    target: Target | None = None
    met: bool | None = None
    details: dict[str, float] = {}


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All results of one run, and the machine on which they were measured."""

    results: tuple[Result, ...]
    machine: dict[str, str | int | float]


def number(
    subject: str, what: str, values: Sequence[float], unit: str, target: Target | None = None, **details: float
) -> Result:
    """The result whose value is the median of `values`."""
    value = statistics.median(values)
    return _result(subject, what, value, values, unit, target, details)


def ratio(
    subject: str, what: str, over: Sequence[float], under: Sequence[float], target: Target | None, **details: float
) -> Result:
    """The result that says how many times `over` is `under`: the ratio of their medians, with that of each pair as its spread."""
    pairs = [one / other for one, other in zip(over, under, strict=False)]
    value = statistics.median(over) / statistics.median(under)
    return _result(subject, what, value, pairs, "×", target, details)


def _result(
    subject: str,
    what: str,
    value: float,
    values: Sequence[float],
    unit: str,
    target: Target | None,
    details: dict[str, float],
) -> Result:
    return Result(
        subject=subject,
        what=what,
        value=value,
        low=min(values),
        high=max(values),
        unit=unit,
        repetitions=len(values),
        target=target,
        met=target.met(value) if target is not None else None,
        details=details,
    )


def machine() -> dict[str, str | int | float]:
    """What the numbers depend on. `load` is the one-minute average as the run ends: above the number of cores it spoils them."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "chaosckpt": version("chaosckpt"),
    }
