"""The table of canaries: how soon the search finds each, and how soon kills at random times do."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from tests.power.hunt import Result


def table(results: Sequence[Result]) -> Table:
    """One row a canary, in the order given."""
    found = Table(title="Canaries", title_justify="left", pad_edge=False)
    found.add_column("canary")
    for heading in ("trials", "faults", "random kills"):
        found.add_column(heading, justify="right")
    found.add_column("invariant")
    found.add_column("others before it")
    found.add_column("")
    for result in results:
        if not result.catches:
            found.add_row(result.canary, "", "", "", result.declared, result.trouble, "FAILED")
            continue
        limits = result.limits
        found.add_row(
            result.canary,
            _trials(result.trials, limits.trials),
            f"{result.faults:g}",
            _trials(result.kills, limits.kills),
            result.declared,
            _others(result),
            "" if result.met else "MISSED",
        )
    return found


def _trials(median: float, limit: int) -> str:
    return f"{median:g}" if median <= limit else f"not in {limit}"


def _others(result: Result) -> str:
    """Which other invariants trials violated before, and how many of all seeds' trials."""
    names = [name for catch in result.catches for _, name in catch.others]
    return ", ".join(f"{name} ({names.count(name)})" for name in dict.fromkeys(names))
