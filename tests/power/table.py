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
    found.add_column("first invariant")
    found.add_column("")
    for result in results:
        if not result.catches:
            found.add_row(result.canary, "", "", "", result.trouble, "FAILED")
            continue
        limits = result.limits
        found.add_row(
            result.canary,
            _trials(result.trials, limits.trials),
            f"{result.faults:g}",
            _trials(result.kills, limits.kills),
            _invariants(result),
            "" if result.met else "MISSED",
        )
    return found


def _trials(median: float, limit: int) -> str:
    return f"{median:g}" if median <= limit else f"not in {limit}"


def _invariants(result: Result) -> str:
    """What the seeds saw, with how many where they don't agree, and what was declared where none saw it."""
    shown = [catch.shown for catch in result.catches if catch.trials]
    counts = {name: shown.count(name) for name in dict.fromkeys(shown)}
    text = ", ".join(name if len(counts) == 1 else f"{name} ({count})" for name, count in counts.items()) or "none"
    return text if set(counts) == {result.declared} else f"{text}; declared: {result.declared}"
