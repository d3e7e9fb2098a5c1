"""`chaosckpt fuzz`: run a campaign, show where it stands, and print its result."""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec

from chaosckpt.campaign import options as campaign_options
from chaosckpt.campaign import run_directory
from chaosckpt.campaign.options import DEFAULT_TRIALS, FuzzOptions
from chaosckpt.cli import failure, output
from chaosckpt.cli.subject import COMMAND, NamedSubject, WithCommand, signs_of_a_command, take_signs
from chaosckpt.errors import UsageError
from chaosckpt.model.summary import INCONCLUSIVE_SHARE
from chaosckpt.report.progress import display
from chaosckpt.report.text import summary_text

EXAMPLES = """\b
Examples:
  chaosckpt fuzz scenarios/dcp.toml --trials 300 --seed 1
  chaosckpt fuzz dcp-overwrite --minutes 2          a shipped scenario by its name
  chaosckpt fuzz my_target.py:MyTarget              your checkpointer, default scenario
  chaosckpt fuzz my.toml --hours 8 --address auto   on the Ray cluster of this machine
  chaosckpt fuzz --resume chaosckpt-runs/007        go on with an interrupted campaign
  chaosckpt fuzz --checkpoints '{out}/ckpt-*' --resumed 'resumed from step (\\d+)' -- python train.py --out {out}
  chaosckpt fuzz --checkpoints '{out}/ckpt-*' -- torchrun --nproc-per-node 2 train.py --out {out}"""


@click.command(cls=WithCommand, epilog=EXAMPLES)
@click.argument("what", metavar="[SCENARIO | -- COMMAND...]", required=False)
@click.option(
    "--trials", type=click.IntRange(min=1), help=f"Stop after so many trials. Default {DEFAULT_TRIALS} without a time."
)
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Stop after this time; adds to --hours.")
@click.option("--hours", type=click.FloatRange(min=0, min_open=True), help="Stop after this time; adds to --minutes.")
@click.option("--seed", type=click.IntRange(min=0), help="What is drawn: the same seed, the same schedules. Default 1.")
@click.option(
    "--workers", type=click.IntRange(min=1), help="Trials that run side by side. Default by the number of cores."
)
@click.option("--address", metavar="ADDRESS", help="A Ray cluster, as for ray.init. Default: a local Ray of its own.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else.")
@click.option("--run-dir", metavar="DIR", help="A new or empty directory for the run. Default chaosckpt-runs/NNN.")
@click.option("--resume", metavar="RUN", help="Go on with this run; its scenario and seed are taken from there.")
@click.option("--keep", is_flag=True, help="Leave the storage of trials with a violation in place.")
@click.option(
    "--max-inconclusive",
    type=click.FloatRange(0, 1),
    help=f"The share of inconclusive trials above which the exit code is 3. Default {INCONCLUSIVE_SHARE}.",
)
@signs_of_a_command
@click.pass_context
def fuzz(
    context: click.Context, /, what: str | None, as_json: bool, run_dir: str | None, resume: str | None, **given: Any
) -> None:
    """Fuzz SCENARIO: a TOML file, the name of a shipped scenario, or a target as FILE.py:CLASS; or an unmodified COMMAND, whose
    {out} is a directory of chaosckpt's.

    Every finding is shrunk, stored as a folder and shown with the command that reproduces it.
    """
    signs = take_signs(given)
    subject = NamedSubject(what, context.meta.get(COMMAND, ()), signs)
    options = _resumed(subject, run_dir, resume, given) if resume else _fresh(subject, run_dir, given)
    failure.report_into(options.run_directory)
    from chaosckpt.campaign import launch  # Imported late, so that help and bad input are answered at once.

    with display(output.error_console(), live=sys.stderr.isatty()) as watch:
        summary = launch.fuzz(options, watch)
    if as_json:
        output.print_json(summary)
    else:
        output.console().print(summary_text(summary))
    context.exit(summary.exit_code)


def _fresh(subject: NamedSubject, run_dir: str | None, given: dict[str, Any]) -> FuzzOptions:
    """Options of a new campaign, with its run directory made. Everything is checked before anything is touched."""
    found = subject.scenario()
    options = _with_given(FuzzOptions(scenario=found, run=""), given)
    if options.trials is None and options.seconds is None:
        options = msgspec.structs.replace(options, trials=DEFAULT_TRIALS)
    options = msgspec.structs.replace(options, run=str(run_directory.create(run_dir)))
    campaign_options.store(options)
    return options


def _resumed(subject: NamedSubject, run_dir: str | None, resume: str, given: dict[str, Any]) -> FuzzOptions:
    """Options of a campaign that goes on: what was stored, with new budgets where they are given."""
    if subject.named:
        raise UsageError(f"--resume takes the scenario from the run; leave out {subject.named!r}")
    if run_dir is not None:
        raise UsageError(f"--resume goes on in {resume}; leave out --run-dir {run_dir}")
    stored = campaign_options.load(run_directory.existing(resume))
    if given["seed"] is not None and given["seed"] != stored.seed:
        raise UsageError(
            f"--seed {given['seed']} is not the seed {stored.seed} of the run {resume}; leave --seed out, or start a new run"
        )
    budgets = ("trials", "minutes", "hours")
    if any(given[name] is not None for name in budgets):
        stored = msgspec.structs.replace(stored, trials=None, seconds=None)
    options = msgspec.structs.replace(_with_given(stored, given), resume=True)
    campaign_options.store(options)
    return options


def _with_given(options: FuzzOptions, given: dict[str, Any]) -> FuzzOptions:
    """The options with those replaced that were named on the command line."""
    changes = {
        name: value for name, value in given.items() if value is not None and name not in ("minutes", "hours", "keep")
    }
    seconds = campaign_options.budget_seconds(given["minutes"], given["hours"])
    if seconds is not None:
        changes["seconds"] = seconds
    if given["keep"]:
        changes["keep"] = True
    return msgspec.structs.replace(options, **changes)
