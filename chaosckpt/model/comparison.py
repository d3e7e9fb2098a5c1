"""Two measurements beside each other: figure by figure the ratio, and what else differs between them."""

from __future__ import annotations

from typing import Literal

import msgspec

Unit = Literal["seconds", "bytes", "count", "ratio", "bytes/second"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of both measurements; medians. None: not measured, or no ratio because the first is 0.

    `apart`: no sample of one lies within the samples of the other; None where there are no samples to tell by.
    """

    name: str
    unit: Unit
    before: float | None
    after: float | None
    ratio: float | None
    apart: bool | None = None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What else isn't alike, so that a ratio may be due to it."""

    what: str
    before: str
    after: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """`measure --compare A B --json` prints exactly this object: ratios of B over A, the eight figures first."""

    before: str
    after: str
    """Where the two were read from."""
    rows: tuple[Row, ...]
    differences: tuple[Difference, ...] = ()
