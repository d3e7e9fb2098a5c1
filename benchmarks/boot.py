"""`boot`: how long a user waits until the first trial of a campaign begins, for information."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import cpu
from benchmarks.result import Result, Settings, number
from chaosckpt.campaign.preparation import CENSUS
from chaosckpt.scenario.load import shipped


def measure(settings: Settings) -> Iterator[Result]:
    """Campaigns of one trial: the first measures its golden runs, the others find them in the cache."""
    with tempfile.TemporaryDirectory(prefix="chaosckpt-benchmark-") as directory:
        place = Path(directory)
        cold = _seconds(place, "cold")
        warm = [_seconds(place, f"warm-{number}") for number in range(settings.times(usual=2, quick=1))]
    yield number("boot", "until the first trial, golden runs included", [cold], "s")
    yield number("boot", "until the first trial, census in the cache", warm, "s")


def _seconds(place: Path, name: str) -> float:
    """Seconds until a campaign searches: it stores its census when nodes and Ray are ready, and the first trial begins."""
    run = place / name
    arguments = ["fuzz", str(shipped()["dcp"]), "--trials", "1", "--workers", "2", "--json", "--run-dir", str(run)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(place / "cache")}
    ran = cpu.run(cpu.chaosckpt(*arguments), expected=(0, 1, 3), environment=environment)
    return (run / CENSUS).stat().st_mtime - ran.began
