"""`torchrun`: the CPU time of a kill trial as it is done by hand, with two launches of torchrun, against the harness's."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import arenas, cpu
from benchmarks.kill_trial import CHECKPOINTER, WORKLOAD, KillTrial
from benchmarks.result import Result, Settings, Target, ratio

TARGET = Target("at least", 50.0)
_JOB = Path(__file__).with_name("torchrun_job.py")
_GATED_EACH = 3
"""Gated trials beside one by torchrun, which takes so much longer."""


def measure(settings: Settings) -> Iterator[Result]:
    """Trials by torchrun, each followed by some of the harness's own."""
    by_hand, harness = [], []
    found = arenas.scenario(CHECKPOINTER, WORKLOAD, "seccomp")
    with arenas.opened(found) as arena:
        trial = KillTrial(found, arena)
        for _ in range(settings.times(usual=3, quick=1)):
            by_hand.append(_by_torchrun())
            harness.append(statistics.median(trial.cpu_seconds() for _ in range(_GATED_EACH)))
    yield ratio(
        "torchrun",
        "CPU of a kill trial, torchrun over gated",
        by_hand,
        harness,
        TARGET,
        torchrun_cpu_seconds=statistics.median(by_hand),
        gated_cpu_seconds=statistics.median(harness),
    )


def _by_torchrun() -> float:
    """CPU seconds of a launch that is killed in mid-save and of the one that resumes and verifies."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(_JOB)]
    with tempfile.TemporaryDirectory(prefix="chaosckpt-benchmark-") as directory:
        environment = {**os.environ, "TMPDIR": directory}  # torchrun leaves the directory of its logs behind
        checkpoints = str(Path(directory) / "checkpoints")
        killed = cpu.run([*command, checkpoints, "--kill"], expected=(1,), environment=environment)
        resumed = cpu.run([*command, checkpoints], environment=environment)
    return killed.cpu_seconds + resumed.cpu_seconds
