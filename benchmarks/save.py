"""`save`: how much longer a dcp.save takes under the gate, by the clock of the rank that saves."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator

from benchmarks import arenas
from benchmarks.result import Result, Settings, Target, ratio
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.model.scenario import Scenario, WorkloadSettings

CHECKPOINTER = "TimedDcp"
SMALL = WorkloadSettings()
LARGE = WorkloadSettings(hidden=2048, layers=2, steps=2, save_every=1)
"""34 MB of parameters, and AdamW's two moments: 101 MB in a checkpoint."""
SMALL_TARGET, LARGE_TARGET = Target("at most", 1.6), Target("at most", 1.4)
_SAID = re.compile(r"^saved in ([0-9.]+)$", re.MULTILINE)


def measure(settings: Settings) -> Iterator[Result]:
    """A job with the gate and one without in turn, small and large; nothing is recorded and nothing struck."""
    yield _overhead("the default workload", SMALL, settings.times(usual=15, quick=3), SMALL_TARGET)
    yield _overhead("a checkpoint of 100 MB", LARGE, settings.times(usual=7, quick=1), LARGE_TARGET)


def _overhead(words: str, workload: WorkloadSettings, jobs: int, target: Target) -> Result:
    over: list[float] = []
    under: list[float] = []
    with arenas.both(CHECKPOINTER, workload) as (with_gate, without):
        for _ in range(jobs):
            over += _save_seconds(*with_gate)
            under += _save_seconds(*without)
    return ratio(
        "save",
        f"time of dcp.save, gated over ungated, {words}",
        over,
        under,
        target,
        gated_milliseconds=1000 * statistics.median(over),
        ungated_milliseconds=1000 * statistics.median(under),
    )


def _save_seconds(found: Scenario, arena: Arena) -> list[float]:
    """How long each save of one job took: from the barrier before it until the last rank had returned."""
    arenas.run_once(arena, found)
    logs = sorted((arena.directory / "logs").glob("attempt-0-rank-*.log"))
    ranks = [[float(seconds) for seconds in _SAID.findall(log.read_text())] for log in logs]
    return [max(save) for save in zip(*ranks, strict=True)]
