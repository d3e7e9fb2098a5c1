"""`chaosckpt fuzz`: run a campaign, show its progress, and print its result."""

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
  chaosckpt fuzz my_target.py:MyTarget              your checkpointer, in a default scenario
  chaosckpt fuzz my.toml --hours 8 --address auto   on the Ray cluster that runs on this machine
  chaosckpt fuzz --resume chaosckpt-runs/007        continue an interrupted campaign
  chaosckpt fuzz --checkpoints '{out}/ckpt-*' --resumed 'resumed from step (\\d+)' -- python train.py --out {out}
  chaosckpt fuzz --checkpoints '{out}/ckpt-*' -- torchrun --nproc-per-node 2 train.py --out {out}

\b
Exit codes: 0 no violation, 1 violations, 2 usage error, 3 harness trouble or too many inconclusive trials,
130 interrupted before any violation."""


@click.command(cls=WithCommand, epilog=EXAMPLES)
@click.argument("what", metavar="[SCENARIO | -- COMMAND...]", required=False)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Stop after N trials. Default: {DEFAULT_TRIALS}, or no limit if --minutes or --hours is given.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Stop after N minutes, golden runs included; adds to --hours.",
)
@click.option(
    "--hours",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Stop after N hours, golden runs included; adds to --minutes.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    help="Random seed. The same seed draws the same fault schedules. Default: 1.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run N trials side by side. Default: by the number of CPU cores.",
)
@click.option(
    "--address",
    metavar="ADDRESS",
    help="Ray cluster to run on, as for ray.init. Default: a local Ray for this campaign only.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout, and nothing else there."
)
@click.option(
    "--run-dir", metavar="DIR", help="New or empty directory for the run. Default: the next chaosckpt-runs/NNN."
)
@click.option(
    "--resume",
    metavar="RUN",
    help="Continue the interrupted run RUN with its scenario and seed. --trials then counts the whole campaign.",
)
@click.option("--keep", is_flag=True, help="Keep a copy of the storage of every trial with a violation, in RUN/kept.")
@click.option(
    "--max-inconclusive",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help=f"Exit with code 3 if a larger share of the trials than this is inconclusive. Default: {INCONCLUSIVE_SHARE}.",
)
@signs_of_a_command
@click.pass_context
def fuzz(
    context: click.Context, /, what: str | None, as_json: bool, run_dir: str | None, resume: str | None, **given: Any
) -> None:
    """Run a fault-injection campaign against SCENARIO or COMMAND.

    SCENARIO is a TOML file, the name of a shipped scenario, or a target as FILE.py:CLASS. COMMAND is an unmodified training job;
    write it last, after --, with {out} in place of its output directory, which chaosckpt provides.

    Each finding is shrunk, stored as a folder, and shown with the command that reproduces it.
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
    """Options of a campaign that is continued: what was stored, with new budgets where they are given."""
    if subject.named:
        raise UsageError(f"--resume takes the scenario from the run; leave out {subject.named!r}")
    if run_dir is not None:
        raise UsageError(f"--resume continues in {resume}; leave out --run-dir {run_dir}")
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
    """The options, with those of the command line in place of the stored ones."""
    changes = {
        name: value for name, value in given.items() if value is not None and name not in ("minutes", "hours", "keep")
    }
    seconds = campaign_options.budget_seconds(given["minutes"], given["hours"])
    if seconds is not None:
        changes["seconds"] = seconds
    if given["keep"]:
        changes["keep"] = True
    return msgspec.structs.replace(options, **changes)
