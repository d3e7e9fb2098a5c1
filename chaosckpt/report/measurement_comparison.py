"""Two measurements side by side on a terminal: the eight figures, the others, and what else differs."""

from __future__ import annotations

from collections.abc import Callable

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from chaosckpt.model.comparison import Comparison, Row
from chaosckpt.report.quantities import bytes_text, digits, ratio_text, seconds_text

FIGURES = 8
"""The rows that come first, apart from the others."""
_SHOWN: dict[str, Callable[[float], str]] = {
    "seconds": seconds_text,
    "bytes": bytes_text,
    "count": digits,
    "ratio": digits,
    "bytes/second": lambda value: f"{bytes_text(value)}/s",
}


def comparison_text(comparison: Comparison) -> RenderableType:
    """A table of ratios of the second over the first, and the differences that may explain them."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("figure")
    for title in ("before", "after", "ratio"):
        table.add_column(title, justify="right")
    table.add_column("")
    for number, row in enumerate(comparison.rows):
        if row.before is None and row.after is None:
            continue
        table.add_row(
            row.name,
            _shown(row, row.before),
            _shown(row, row.after),
            _ratio(row),
            _apart(row),
            end_section=number == FIGURES - 1,
        )
    parts: list[RenderableType] = [
        Text(f"before  {comparison.before}\nafter   {comparison.after}\n", style="dim"),
        table,
    ]
    if comparison.differences:
        text = Text("\nWhat else differs\n", style="bold")
        for difference in comparison.differences:
            text.append(f"  {difference.what}: {difference.before} → {difference.after}\n", style="yellow not bold")
        parts.append(text)
    return Group(*parts)


def _shown(row: Row, value: float | None) -> str:
    return "-" if value is None else _SHOWN[row.unit](value)


def _ratio(row: Row) -> Text:
    if row.ratio is None:
        return Text("-")
    return Text(ratio_text(row.ratio), style="bold" if row.apart else "")


def _apart(row: Row) -> str:
    """Medians of figures that scatter into one another say little."""
    return "within the spread" if row.apart is False and row.ratio != 1 else ""
