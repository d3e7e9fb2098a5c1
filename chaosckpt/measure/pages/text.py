"""A measurement, or two side by side, as a person reads them on a terminal: the eight figures first, then every detail."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from chaosckpt.measure.comparison import Comparison, Row
from chaosckpt.measure.measurement import Measurement
from chaosckpt.measure.pages.sections import Section, headlines, subtitle, surroundings, title
from chaosckpt.measure.pages.tables import detail_sections
from chaosckpt.report.quantities import bytes_text, digits, ratio_text, seconds_text

INDENT = (0, 0, 0, 2)
"""Of rows below their title, as rich counts: above, right, below, left."""
NAMES = 20
"""Columns of the names of figures."""


def measurement_text(measurement: Measurement) -> RenderableType:
    """The whole report; its first page are the lines above the first detail."""
    parts: list[RenderableType] = [
        Text(title(measurement), style="bold"),
        Text(f"{subtitle(measurement)}\n", style="dim"),
    ]
    figures = Table.grid(padding=(0, 2))
    figures.add_column(min_width=NAMES, style="bold")
    figures.add_column(style="bold green", overflow="fold")
    figures.add_column(overflow="fold")
    for line in headlines(measurement):
        figures.add_row(line.name, line.value, line.remark)
    parts.append(Padding(figures, INDENT, expand=False))
    for section in (surroundings(measurement), *detail_sections(measurement)):
        parts += _section(section)
    return Group(*parts)


def _section(section: Section) -> Iterator[RenderableType]:
    yield Text(f"\n{section.title}", style="bold")
    if section.rows:
        yield Padding(_table(section) if section.headers else _names(section), INDENT, expand=False)
    for remark in section.remarks:
        yield Padding(Text(remark, style="yellow"), INDENT, expand=False)


def _table(section: Section) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for header in section.headers:
        table.add_column(header, overflow="fold")
    for row in section.rows:
        # As Text, since a mount option in square brackets would be taken for a style.
        table.add_row(*(Text(cell) for cell in row))
    return table


def _names(section: Section) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=NAMES, style="dim")
    table.add_column(overflow="fold")
    for name, value in section.rows:
        table.add_row(Text(name), Text(value))
    return table


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
    for column in ("before", "after", "ratio"):
        table.add_column(column, justify="right")
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
