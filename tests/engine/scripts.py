"""Small scripts and an arena for them, for tests that run an unmodified command."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from chaosckpt.commands.launches import Warmth
from chaosckpt.engine.golden.command_run import COLD, Run, run_command
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.command_arena import is_forked, open_command_arena
from chaosckpt.model.scenario import CommandSettings, Scenario
from chaosckpt.model.topology import Topology

BARELY_WARM = Warmth(modules=("json",))
COUNTING = """
import os, re, sys
out = sys.argv[1]
os.makedirs(out, exist_ok=True)
done = sorted(int(f[1]) for n in os.listdir(out) if (f := re.fullmatch(r"ckpt-([0-9]+)", n)))
step = int(open(f"{out}/ckpt-{done[-1]}").read()) if done else 0
if step:
    print("resumed from step", step)
while step < 6:
    step += 1
    if step % 2 == 0:
        with open(f"{out}/new", "w") as file:
            file.write(f"{step}")
        os.replace(f"{out}/new", f"{out}/ckpt-{step}")
        print("saved step", step)
with open(f"{out}/final", "w") as file:
    file.write("6")
"""
"""Counts to six, saving every second number under a temporary name first."""


def scenario_of(argv: Sequence[str], directory: Path, **signs: object) -> Scenario:
    """A scenario for a command, run in `directory`."""
    command = msgspec.convert({"argv": list(argv), "directory": str(directory), **signs}, CommandSettings)
    return Scenario(name="script", command=command)


def python(script: Path, *arguments: str) -> tuple[str, ...]:
    """The command line of a script under this very interpreter."""
    return (sys.executable, str(script), *arguments)


@contextmanager
def arena_for(scenario: Scenario) -> Iterator[Arena]:
    """An arena, removed at the end; a plain script runs there in forks of an interpreter that has imported next to nothing."""
    assert scenario.command is not None
    arena = open_command_arena(scenario, scenario.command, BARELY_WARM if is_forked(scenario.command) else COLD)
    try:
        yield arena
    finally:
        arena.close()


def out_of(arena: Arena) -> Path:
    """What `{out}` stands for."""
    return Path(arena.tiers(0)["out"])


def run_once(scenario: Scenario, arena: Arena, **more: object) -> Run:
    """Run the command once on empty storage."""
    arena.reset()
    assert scenario.command is not None
    return run_command(arena, scenario.command, Topology((1,)), **more)  # type: ignore[arg-type]
