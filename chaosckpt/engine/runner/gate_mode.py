"""Gate mode: whether faults can strike at exact operations on this machine, really tried."""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import Literal

import msgspec

from chaosckpt.errors import UsageError
from chaosckpt.gate.support import Probe
from chaosckpt.model.scenario import Scenario

Mode = Literal["seccomp", "none"]


@functools.cache
def tried() -> Probe:
    """What a child process found when it put itself under a gate. A filter can't be taken off, so it is a process of its own."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "chaosckpt.gate.support"], capture_output=True, text=True, check=False
    )
    try:
        return msgspec.json.decode(done.stdout, type=Probe)
    except msgspec.MsgspecError:
        lines = done.stderr.strip().splitlines()
        return Probe(works=False, problem=lines[-1] if lines else f"the probe exited with status {done.returncode}")


def choose(scenario: Scenario) -> Mode:
    """The mode that a scenario asks for. `auto` takes the gate where it works, else kills at stage boundaries only.

    Raises UsageError where the gate is demanded and doesn't work.
    """
    if scenario.run.gate == "none":
        return "none"
    found = tried()
    if found.works:
        return "seccomp"
    if scenario.run.gate == "seccomp":
        raise UsageError(
            f'run.gate = "seccomp", but the gate does not work here: {found.problem}; `chaosckpt doctor` shows what is missing'
        )
    return "none"
