"""What is checked before anything is measured: that the target can be asked, and that memory and disk hold the largest point."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from chaosckpt.engine.subjects import subject_of
from chaosckpt.errors import UsageError
from chaosckpt.measure.sweep import FLOAT_BYTES, MeasureOptions, SweepPoint, checkpoint_bytes, parameters
from chaosckpt.model.phrasing import plural
from chaosckpt.report.quantities import bytes_text

LIVE_COPIES = 4
"""Of every parameter in a training rank: itself, its gradient and two moments."""
STAGED_COPIES = 3
"""While it saves: a copy of what goes into the checkpoint."""
PROCESS_BYTES = 64_000_000
"""A rank by itself, beside what it shares with the process that it was forked from."""
GENERATIONS = 3
"""Two checkpoints that are kept, and one that is being written."""


def check(options: MeasureOptions, sweep: Sequence[SweepPoint]) -> None:
    """Raise UsageError, with the value and the next step, for what can't be measured here."""
    scenario = options.scenario
    subject_of(scenario).require_target("measure")
    jobs = 1 + options.neighbours
    directory = Path(scenario.storage.shared or tempfile.gettempdir())
    if not directory.is_dir():
        raise UsageError(
            f"storage.shared = {str(directory)!r} does not exist; create the directory, or name another one"
        )
    if not os.access(directory, os.W_OK):
        raise UsageError(f"storage.shared = {str(directory)!r} is not writable; name another directory in [storage]")
    for point in sweep:
        check_memory(point, jobs, available_memory_bytes())
        check_disk(point, jobs, shutil.disk_usage(directory).free, str(directory))


def check_memory(point: SweepPoint, jobs: int, available_bytes: int) -> None:
    """Raise UsageError where so many jobs of this point don't fit in memory."""
    needed = jobs * memory_bytes(point)
    if needed > available_bytes:
        raise UsageError(
            f"a checkpoint of {bytes_text(checkpoint_bytes(point.workload))} on {plural(point.topology.world_size, 'rank')} needs "
            f"about {bytes_text(needed)} of memory{_of(jobs)}, and {bytes_text(available_bytes)} are available; "
            f"name a smaller --size{_fewer(jobs)}"
        )


def check_disk(point: SweepPoint, jobs: int, free_bytes: int, directory: str) -> None:
    """Raise UsageError where the checkpoints of so many jobs don't fit on the disk."""
    needed = jobs * GENERATIONS * checkpoint_bytes(point.workload)
    if needed > free_bytes:
        raise UsageError(
            f"{GENERATIONS} checkpoints of {bytes_text(checkpoint_bytes(point.workload))} need {bytes_text(needed)}{_of(jobs)}, and "
            f"{bytes_text(free_bytes)} are free in {directory}; name a smaller --size{_fewer(jobs)}, or another directory in [storage]"
        )


def memory_bytes(point: SweepPoint) -> int:
    """About what one job takes: every rank holds the whole model under ddp, its share under fsdp2, and what it stages."""
    weight = FLOAT_BYTES * parameters(point.workload)
    ranks = point.topology.world_size
    live = LIVE_COPIES * weight * (ranks if point.workload.strategy == "ddp" else 1)
    return live + STAGED_COPIES * weight * ranks + PROCESS_BYTES * ranks


def available_memory_bytes() -> int:
    """What can be had without swapping: of the machine, or of the control group that this process is confined to."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    machine = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    limit, used = _number("/sys/fs/cgroup/memory.max"), _number("/sys/fs/cgroup/memory.current")
    return machine if limit is None or used is None else min(machine, max(0, limit - used))


def _number(path: str) -> int | None:
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _of(jobs: int) -> str:
    return "" if jobs == 1 else f" for the job and {plural(jobs - 1, 'neighbour')}"


def _fewer(jobs: int) -> str:
    return "" if jobs == 1 else " or fewer --neighbours"
