"""A measurement as a person reads it on a terminal: the eight figures first, what they hold for, then every detail."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from chaosckpt.model.measurement import Measurement
from chaosckpt.report.measurement_headlines import headlines, subtitle, surroundings, title
from chaosckpt.report.measurement_interval import interval_sections
from chaosckpt.report.measurement_tables import detail_sections
from chaosckpt.report.sections import Section

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
    for section in (surroundings(measurement), *interval_sections(measurement.advice), *detail_sections(measurement)):
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
