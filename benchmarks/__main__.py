"""`python -m benchmarks [SUBJECT...] [--quick] [--json FILE]`: measures, and prints a table and JSON.

The table and the progress go to stderr, the JSON to stdout, or to FILE. Exit status 1 when a target is missed.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import BinaryIO

import click
import msgspec
from rich.console import Console

from benchmarks import boot, fuzz, gate, measure, save, script, torchrun
from benchmarks.result import Report, Result, Settings, machine
from benchmarks.table import table
from chaosckpt.errors import ChaosckptError

SUBJECTS: dict[str, Callable[[Settings], Iterator[Result]]] = {
    "gate": gate.measure,
    "torchrun": torchrun.measure,
    "save": save.measure,
    "fuzz": fuzz.measure,
    "script": script.measure,
    "boot": boot.measure,
    "measure": measure.measure,
}

WIDE = 140
"""Columns of the table where there is no terminal to tell."""


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.argument("subjects", metavar="[SUBJECT]...", nargs=-1, type=click.Choice(list(SUBJECTS)))
@click.option("--quick", is_flag=True, help="Few repetitions: for trying out, not for numbers to be shown.")
@click.option(
    "--repetitions",
    type=click.IntRange(min=1),
    help="Repeat everything so often (for fuzz: trials), whatever the subject.",
)
@click.option(
    "--json", "file", type=click.File("wb", lazy=False), default="-", help="Where the JSON goes. Default stdout."
)
@click.pass_context
def main(
    context: click.Context, subjects: tuple[str, ...], quick: bool, repetitions: int | None, file: BinaryIO
) -> None:
    """Measure what the harness costs: gate, torchrun, save, fuzz, script, boot, measure; all of them by default."""
    signal.signal(signal.SIGTERM, _interrupt)
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        console.width = WIDE
    settings = Settings(quick=quick, repetitions=repetitions)
    results: list[Result] = []
    for name in subjects or SUBJECTS:
        console.print(f"measuring {name} ...")
        try:
            results += SUBJECTS[name](settings)
        except ChaosckptError as error:
            raise click.ClickException(f"{name} could not be measured: {error}") from error
    report = Report(results=tuple(results), machine=machine())
    console.print(table(report))
    file.write(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    context.exit(1 if any(result.met is False for result in results) else 0)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """SIGTERM ends the run as Ctrl-C does: with everything closed and removed."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
