"""`chaosckpt init`: a starter scenario and a starter target, to adapt."""

from __future__ import annotations

from pathlib import Path

import click

from chaosckpt.errors import UsageError

SCENARIO = """\
# What to test. docs/reference/scenario.md describes every key. Try it: chaosckpt fuzz scenario.toml --trials 50
name = "mine"
description = "My checkpointer: two nodes with one rank each, and one rank alone"

[target]
use = "my_target.py:MyTarget"

[workload]
steps = 6
save_every = 2

[topology]
ranks = [[1, 1], [1]]
"""

TARGET = '''\
"""A checkpointer to test: one directory per step, and a marker file that declares it complete. It has a bug; fuzz finds it."""

from __future__ import annotations

import torch

from chaosckpt.targets import Chosen, Done, Intent, Nothing, Pending, Target


class MyTarget(Target):
    """Replace the bodies of `save` and `recover` with calls of your own checkpointing code."""

    def save(self, state, step: int) -> Pending:
        directory = self.shared / f"step-{step}"
        if self.rank == 0:  # One rank only: the order of two would differ from run to run.
            directory.mkdir(exist_ok=True)
        self.barrier()
        if self.rank == 0:
            (directory / "COMPLETE").touch()  # The bug: the marker exists before the files do.
            torch.save(state.state_dict(), directory / "state.pt")
        torch.save(state.rank_state_dict(), directory / f"rank-{self.rank}.pt")
        self.barrier()
        return Done("shared")

    def recover(self, state, intent: Intent) -> Chosen | Nothing:
        complete = [int(marker.parent.name.removeprefix("step-")) for marker in self.shared.glob("step-*/COMPLETE")]
        newest = self.broadcast(max(complete, default=None))
        if newest is None:
            return self.nothing(intent, str(self.shared / "step-*/COMPLETE"))
        directory = self.shared / f"step-{newest}"
        state.load_state_dict(torch.load(directory / "state.pt", weights_only=False))
        own = directory / f"rank-{self.rank}.pt"
        # A rank added since the save has no file of its own; every rank's file holds the data position.
        state.load_rank_state_dict(torch.load(own if own.exists() else directory / "rank-0.pt", weights_only=False))
        return Chosen(newest)
'''

FILES = {"scenario.toml": SCENARIO, "my_target.py": TARGET}


@click.command()
@click.argument("directory", metavar="[DIRECTORY]", default=".")
def init(directory: str) -> None:
    """Write a starter scenario and a starter target into DIRECTORY (default: the current directory).

    Existing files are never overwritten.
    """
    path = Path(directory)
    taken = [name for name in FILES if (path / name).exists() or (path / name).is_symlink()]
    if taken:
        raise UsageError(f"{path / taken[0]} already exists and is not overwritten; name another directory")
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name, content in FILES.items():
            with (path / name).open("x", encoding="utf-8") as file:
                file.write(content)
            click.echo(f"wrote {path / name}")
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}; name another directory") from error
    click.echo(f"Try it: chaosckpt fuzz {path / 'scenario.toml'} --trials 50")
