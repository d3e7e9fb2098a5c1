"""`script`: trials a minute of an unmodified script in forks of a warm interpreter, against starting it cold twice a trial."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import cpu
from benchmarks.result import Result, Settings, Target, number
from chaosckpt.scenario.load import shipped_directory

TARGET = Target("at least", 15.0)
SCRIPT = "plain_replace.py"
SIGNS = ("--checkpoints", "{out}/ckpt-*.pt", "--resumed", r"resumed from step (\d+)", "--saved", r"saved step (\d+)")
_CLEAN, _VIOLATIONS = 0, 1


def measure(settings: Settings) -> Iterator[Result]:
    """A campaign of some trials, and the same script started cold, twice for each trial, in one run."""
    trials = settings.times(usual=120, quick=24)
    script = shipped_directory() / "scripts" / SCRIPT
    with tempfile.TemporaryDirectory(prefix="chaosckpt-benchmark-") as directory:
        cold = _cold_trials_a_minute(script, Path(directory), max(2, trials // 30))
        arguments = [
            "fuzz",
            "--trials",
            str(trials),
            "--workers",
            "2",
            "--json",
            *SIGNS,
            "--run-dir",
            f"{directory}/run",
        ]
        command = ["--", sys.executable, str(script), "--out", "{out}"]
        ran = cpu.run(cpu.chaosckpt(*arguments, *command), expected=(_CLEAN, _VIOLATIONS))
        summary = json.loads(ran.output)
    yield number(
        "script",
        f"fuzz of a script with three saves, {trials} trials by 2 workers, against a cold start twice a trial",
        [summary["rate_per_minute"] / cold],
        "x",
        TARGET,
        trials=summary["trials"],
        violations=summary["violations"],
        inconclusive=summary["inconclusive"],
        warm_trials_per_minute=summary["rate_per_minute"],
        cold_trials_per_minute=cold,
    )


def _cold_trials_a_minute(script: Path, directory: Path, trials: int) -> float:
    """The usual loop: start the script, and start it again to see it resume."""
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    started = time.monotonic()
    for trial in range(trials):
        for _ in range(2):
            cpu.run([sys.executable, str(script), "--out", str(directory / f"cold-{trial}")], environment=environment)
    return 60 * trials / (time.monotonic() - started)
