"""`gate`: what the gate adds to the CPU time of a kill trial, against the same work without any filter."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks import arenas
from benchmarks.kill_trial import CHECKPOINTER, WORKLOAD, KillTrial
from benchmarks.result import Result, Settings, Target, ratio

TARGET = Target("at most", 1.3)


def measure(settings: Settings) -> Iterator[Result]:
    """Gated and ungated trials in turn."""
    with arenas.both(CHECKPOINTER, WORKLOAD) as (with_gate, without):
        gated, bare = KillTrial(*with_gate), KillTrial(*without)
        over, under = [], []
        for _ in range(settings.times(usual=25, quick=5)):
            over.append(gated.cpu_seconds())
            under.append(bare.cpu_seconds())
    yield ratio(
        "gate",
        "CPU of a kill trial, gated over ungated",
        over,
        under,
        TARGET,
        gated_cpu_seconds=statistics.median(over),
        ungated_cpu_seconds=statistics.median(under),
    )
