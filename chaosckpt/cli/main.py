"""The command group `chaosckpt`. Each command has a file of its own."""

from __future__ import annotations

import click

from chaosckpt.cli.doctor import doctor
from chaosckpt.cli.drill import drill
from chaosckpt.cli.failure import CommandGroup, guarded
from chaosckpt.cli.fuzz import fuzz
from chaosckpt.cli.init import init
from chaosckpt.cli.judge import judge
from chaosckpt.cli.listing import listing
from chaosckpt.cli.measure import measure
from chaosckpt.cli.reproduce import reproduce

EXAMPLES = """\b
Start here:
  chaosckpt doctor                                      check this machine
  chaosckpt fuzz dcp-overwrite --trials 20              find a real bug in PyTorch DCP
  chaosckpt fuzz my_target.py:MyTarget                  test your own checkpointer
  chaosckpt fuzz -- python train.py --out {out}         test your own training script
  chaosckpt reproduce chaosckpt-runs/001/findings/ID    replay a finding
  chaosckpt measure dcp-async --mtbf 24h                what checkpoints cost, and how often to save

\b
Exit codes: 0 no violation, 1 violations, 2 usage error, 3 harness trouble or too many inconclusive trials,
130 interrupted."""


@click.group(
    cls=CommandGroup,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(package_name="chaosckpt")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback if chaosckpt itself fails.")
def group() -> None:
    """Find out whether training can really resume from its checkpoints.

    Launches real distributed training, injects faults at exact storage operations, restarts the job, and judges whether recovery
    restored the newest complete checkpoint with its whole state, or failed clearly.
    """
    from chaosckpt.campaign import logs  # Imported late, so that help appears at once.

    logs.to_terminal()


for command in (fuzz, drill, measure, reproduce, judge, listing, doctor, init):
    group.add_command(command)


def main() -> None:
    """The console script."""
    guarded(group)
