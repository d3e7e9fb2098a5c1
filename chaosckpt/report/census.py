"""The census of a scenario for a person: the operations of one golden run, by stage, in order."""

from __future__ import annotations

from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from chaosckpt.model.census import GoldenRun, Point
from chaosckpt.model.phrasing import plural
from chaosckpt.report.text import STAGES


def census_table(run: GoldenRun) -> RenderableType:
    """One golden run: a title, the number of operations by stage, and a line for each run of like operations."""
    start = "from step 0" if run.resumed_from is None else f"resumed from step {run.resumed_from}"
    ranks = plural(run.topology.world_size, "rank")
    title = Text(f"{run.topology} ({ranks}), {start}: {plural(len(run.points), 'operation')}", style="bold")
    counts = {stage: sum(point.label.stage == stage for point in run.points) for stage in STAGES}
    stages = Text(", ".join(f"{stage} {count}" for stage, count in counts.items() if count), style="dim")
    return Group(title, stages, _points(run), Text(""))


def _points(run: GoldenRun) -> Table:
    """Neighbouring operations of one kind on one file share a line: 28 writes of a shard are `×28`."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("stage", "rank", "operation", "path", "times", "bytes"):
        table.add_column(name, justify="right" if name in ("rank", "times", "bytes") else "left", no_wrap=True)
    points = sorted(run.points, key=lambda point: point.address.rank)
    for (label, rank, op, path), group in groupby(points, key=_likeness):
        members = list(group)
        lengths = [member.length for member in members if member.length is not None]
        table.add_row(
            label,
            str(rank),
            op,
            path,
            f"×{len(members)}" if len(members) > 1 else "",
            str(sum(lengths)) if lengths else "",
        )
    return table


def _likeness(point: Point) -> tuple[str, int, str, str]:
    return str(point.label), point.address.rank, point.address.op, point.address.path
