"""`python -m tests.power [--seeds N] [--canaries NAME,...] [--trials N] [--json FILE]`: finds every canary, and prints a table.

The table and the progress go to stderr, the JSON to stdout, or to FILE. Exit status 1 when a canary isn't found.
"""

from __future__ import annotations

import sys
from typing import BinaryIO

import click
import msgspec
from rich.console import Console

from chaosckpt.campaign.execution import SharedExclusiveLock
from chaosckpt.engine.runner.arena import Arena
from tests.power import canary_scenarios
from tests.power.hunt import Limits, Result, hunt
from tests.power.side_by_side import SideBySide, interruptible
from tests.power.table import table
from tests.power.warm_arena import warm

WIDE = 120
"""Columns of the table where there is no terminal to tell."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="Hunts of each canary.")
@click.option("--canaries", default="", help="Only these, separated by commas; canary- may be left out.")
@click.option("--trials", type=click.IntRange(min=1), default=200, show_default=True, help="Trials of a hunt, at most.")
@click.option("--kills", type=click.IntRange(min=0), default=60, show_default=True, help="Random kills, at most.")
@click.option("--width", type=click.IntRange(1, 8), default=2, show_default=True, help="Hunts side by side.")
@click.option("--json", "file", type=click.File("wb", lazy=False), default="-", help="Where the JSON goes.")
@click.pass_context
def main(
    context: click.Context, seeds: int, canaries: str, trials: int, kills: int, width: int, file: BinaryIO
) -> None:
    """Hunt every canary with the ordinary search and with kills at random times."""
    interruptible()
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        console.width = WIDE
    known = canary_scenarios.canaries()
    chosen = [
        name if name.startswith(canary_scenarios.PREFIX) else canary_scenarios.PREFIX + name
        for name in canaries.split(",")
        if name
    ]
    for name in chosen:
        if name not in known:
            raise click.UsageError(f"{name} is no canary; there are: {', '.join(known)}")
    limits, lock = Limits(trials, kills), SharedExclusiveLock()

    def one(name: str, arena: Arena) -> Result:
        return hunt(name, known[name], arena, range(seeds), limits, lock, console.print)

    def failed(name: str, why: str) -> Result:
        return Result(name, known[name], limits, trouble=why)

    results = SideBySide(one, failed, warm, keep=True).run(chosen or list(known), width)
    console.print(table(results))
    file.write(msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n")
    context.exit(0 if all(result.met for result in results) else 1)


if __name__ == "__main__":
    sys.exit(main())
