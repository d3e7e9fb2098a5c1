"""`python -m tests.power.soundness [--trials N] [--targets NAME,...] [--json FILE]`: correct targets must pass every trial.

The table and the progress go to stderr, the JSON to stdout, or to FILE. Exit status 1 on any violation.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import click
import msgspec
from rich.console import Console
from rich.table import Table

from chaosckpt.campaign.execution import Executor, SharedExclusiveLock
from chaosckpt.campaign.preparation import deadlines_of
from chaosckpt.engine.golden.census import measure
from chaosckpt.engine.runner.arena import Arena, open_local
from chaosckpt.engine.subjects import Prepared, subject_of
from chaosckpt.model.scenario import Scenario, Strategy
from chaosckpt.plugins import fault_kinds, load_target
from chaosckpt.strategies.drawing import draw
from tests.engine.case import scenario_of
from tests.power.side_by_side import SideBySide, interruptible

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial" / "my_target.py"
TARGETS = {
    "torch-save-atomic": "torch-save-atomic",
    "torch-save-async": "torch-save-async",
    "torch-save-checked": "torch-save-checked",
    "dcp": "dcp",
    "dcp-async": "dcp-async",
    "two-tier": "two-tier",
    "tutorial": f"{TUTORIAL}:MyTarget",
}
"""Every target that keeps what it claims."""
OPT_IN_WEIGHT = 0.5
EVERY = 25
"""Trials between two lines of progress."""


class Subject(msgspec.Struct, frozen=True):
    """A target under one strategy."""

    target: str
    strategy: Strategy

    def __str__(self) -> str:
        return f"{self.target} {self.strategy}"

    def scenario(self) -> Scenario:
        """Its scenario: all kinds of fault are drawn, those that are opt-in where the target promises what they test."""
        use = TARGETS[self.target]
        guarantees = load_target(use).guarantees
        kinds = {
            name: kind.weight or OPT_IN_WEIGHT
            for name, kind in fault_kinds().items()
            if kind.weight or kind.needs <= guarantees
        }
        grows = "world-size-change" in guarantees
        more: dict[str, Any] = {"faults": {"kinds": kinds}, "workload": {"strategy": self.strategy}}
        return scenario_of(use, ((1, 1), (2, 1), (1,)) if grows else ((1, 1),), **more)


class Tally(msgspec.Struct, kw_only=True):
    """What the trials of a subject gave. `violations` are (SEED:INDEX, invariant, sentence)."""

    subject: Subject
    trials: int = 0
    passed: int = 0
    seconds: float = 0.0
    inconclusive: dict[str, int] = {}
    violations: list[tuple[str, str, str]] = []
    trouble: str = ""

    @property
    def rate_per_minute(self) -> float:
        return 60 * self.trials / self.seconds if self.seconds else 0.0


def fresh(subject: Subject) -> Arena:
    """An arena of this subject's own: its names and modules are like no other's."""
    return open_local(subject.scenario())


def examine(
    subject: Subject,
    arena: Arena,
    seed: int,
    first: int,
    trials: int,
    lock: SharedExclusiveLock,
    say: Callable[[str], None],
) -> Tally:
    """Run the trials `seed:first` and so on of one subject."""
    scenario, kinds = subject.scenario(), fault_kinds()
    census = measure(scenario, arena, sweeping=True)
    executor = Executor(
        subject_of(scenario, Prepared(census=census)), arena, deadlines_of(census), lock, lambda trial, event: None
    )
    tally, started = Tally(subject=subject), time.monotonic()
    for index in range(first, first + trials):
        trial = f"{seed}:{index}"
        verdict = executor.run(draw(seed, index, scenario, census, kinds), trial).verdict
        tally.trials += 1
        tally.seconds = time.monotonic() - started
        if verdict.primary is not None:
            tally.violations.append((trial, verdict.primary.invariant, verdict.primary.sentence))
            say(f"{subject}: {trial} {verdict.primary.invariant}: {verdict.primary.sentence}")
        elif verdict.outcome == "pass":
            tally.passed += 1
        else:
            tally.inconclusive[verdict.reason] = tally.inconclusive.get(verdict.reason, 0) + 1
        if tally.trials % EVERY == 0:
            say(
                f"{subject}: {tally.trials} trials, {len(tally.violations)} violations, {tally.rate_per_minute:.0f} a minute"
            )
    return tally


def table(tallies: list[Tally]) -> Table:
    """One row a subject, and one for each violation below it."""
    found = Table(title="Soundness", title_justify="left", pad_edge=False)
    found.add_column("target")
    for heading in ("trials", "passed", "inconclusive", "violations", "a minute"):
        found.add_column(heading, justify="right")
    found.add_column("")
    for tally in tallies:
        counts = (tally.trials, tally.passed, sum(tally.inconclusive.values()), len(tally.violations))
        found.add_row(str(tally.subject), *map(str, counts), f"{tally.rate_per_minute:.0f}", tally.trouble)
        for trial, invariant, sentence in tally.violations:
            found.add_row("", "", "", "", trial, "", f"{invariant}: {sentence}")
    return found


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--trials", type=click.IntRange(min=1), default=1000, show_default=True, help="Trials of each subject.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--first", type=click.IntRange(min=0), default=0, show_default=True, help="The first trial's index.")
@click.option("--targets", default="", help="Only these, separated by commas; with a strategy as in dcp:fsdp2.")
@click.option("--width", type=click.IntRange(1, 8), default=2, show_default=True, help="Subjects side by side.")
@click.option("--json", "file", type=click.File("wb", lazy=False), default="-", help="Where the JSON goes.")
@click.pass_context
def main(context: click.Context, trials: int, seed: int, first: int, targets: str, width: int, file: BinaryIO) -> None:
    """Run every correct target with all kinds of fault, and count what does not pass."""
    interruptible()
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        console.width = 160
    lock = SharedExclusiveLock()

    def one(subject: Subject, arena: Arena) -> Tally:
        return examine(subject, arena, seed, first, trials, lock, console.print)

    def failed(subject: Subject, why: str) -> Tally:
        return Tally(subject=subject, trouble=why)

    tallies = SideBySide(one, failed, fresh, keep=False).run(_chosen(targets), width)
    console.print(table(tallies))
    file.write(msgspec.json.format(msgspec.json.encode(tallies), indent=2) + b"\n")
    context.exit(1 if any(tally.violations or tally.trouble for tally in tallies) else 0)


def _chosen(text: str) -> list[Subject]:
    subjects = [
        Subject(target, strategy) for target in TARGETS for strategy in sorted(load_target(TARGETS[target]).strategies)
    ]
    wanted = [word for word in text.split(",") if word]
    chosen = [s for s in subjects if s.target in wanted or f"{s.target}:{s.strategy}" in wanted]
    known = {name for s in subjects for name in (s.target, str(s).replace(" ", ":"))}
    for word in wanted:
        if word not in known:
            raise click.UsageError(f"{word} is no correct target; there are: {', '.join(TARGETS)}")
    return chosen or subjects


if __name__ == "__main__":
    sys.exit(main())
