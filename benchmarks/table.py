"""The table: each number with its spread, beside its target."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from benchmarks.result import Report, Result


def table(report: Report) -> Table:
    """All results of a run; the caption names the machine."""
    machine = report.machine
    found = Table(
        box=box.SIMPLE,
        caption=f"{machine['cores']} cores, load {machine['load']:.1f}, Linux {machine['kernel']}, torch {machine['torch']}",
    )
    for heading in ("subject", "what"):
        found.add_column(heading)
    for heading in ("measured", "min - max", "n", "target"):
        found.add_column(heading, justify="right", no_wrap=True)
    found.add_column("met")
    for result in report.results:
        found.add_row(*_cells(result))
    return found


def _cells(result: Result) -> tuple[str | Text, ...]:
    what = Text(result.what)
    for name, value in result.details.items():
        what.append(f"\n  {name.replace('_', ' ')} {value:.4g}", style="dim")
    met = {None: Text(""), True: Text("yes", style="green"), False: Text("no", style="bold red")}[result.met]
    spread = f"{_short(result.low)} - {_short(result.high)}" if result.repetitions > 1 else ""
    target = str(result.target) if result.target is not None else ""
    measured = f"{_short(result.value)} {result.unit}"
    return result.subject, what, measured, spread, str(result.repetitions), target, met


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"
