"""`fuzz`: trials a minute of a campaign over the shipped scenario for PyTorch DCP, with two workers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import cpu
from benchmarks.result import Result, Settings, Target, number
from chaosckpt.scenario.load import shipped

TARGET = Target("at least", 150.0)
_CLEAN, _VIOLATIONS = 0, 1


def measure(settings: Settings) -> Iterator[Result]:
    """One campaign of many trials; `repetitions`, where given, is their number."""
    trials = settings.times(usual=300, quick=40)
    with tempfile.TemporaryDirectory(prefix="chaosckpt-benchmark-") as directory:
        run = Path(directory) / "run"
        arguments = ["fuzz", str(shipped()["dcp"]), "--trials", str(trials), "--workers", "2", "--json"]
        ran = cpu.run(cpu.chaosckpt(*arguments, "--run-dir", str(run)), expected=(_CLEAN, _VIOLATIONS))
        summary = json.loads(ran.output)
    yield number(
        "fuzz",
        f"fuzz scenarios/dcp.toml, {trials} trials by 2 workers",
        [summary["rate_per_minute"]],
        "trials/min",
        TARGET,
        trials=summary["trials"],
        violations=summary["violations"],
        inconclusive=summary["inconclusive"],
        wall_seconds=ran.seconds,
    )
