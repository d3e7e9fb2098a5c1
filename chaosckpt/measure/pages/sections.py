"""A report as sections of plain rows, which the terminal and the page show alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaosckpt.measure.measurement import Spread


@dataclass(frozen=True)
class Section:
    """A table with a title. Without headers each row is a name and what is said of it. Remarks are sentences below the rows."""

    title: str
    rows: tuple[tuple[str, ...], ...] = ()
    headers: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Headline:
    """One of the figures that lead: its name, its value, and what belongs beside it."""

    name: str
    value: str
    remark: str = ""


def spread_text(spread: Spread | None, shown: Callable[[float], str]) -> str:
    """`2.1 s (2 s to 2.5 s)`: the median, with the lowest and the highest sample where they read differently."""
    if spread is None:
        return "-"
    median, low, high = shown(spread.median), shown(spread.low), shown(spread.high)
    return median if low == high else f"{median} ({low} to {high})"
