"""Restarts in a fresh allocation: new processes by exec load what the job has left, with a warm and with a cold page cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from chaosckpt.engine.wire.programs import MeasuringProgram
from chaosckpt.errors import UsageError
from chaosckpt.measure import page_cache
from chaosckpt.measure.figures import restart
from chaosckpt.measure.job import Job
from chaosckpt.measure.measurement import Restart
from chaosckpt.model.topology import Topology
from chaosckpt.training.metered import Metered

UNMARKED = "the target doesn't mark where it begins to load, so that finding out what to load is within loading"
INTERPRETER = "the interpreter's own files stay cached"


class Restarts(msgspec.Struct, frozen=True):
    """Restarts with the page cache in one state: for each, what its ranks told."""

    cache: Literal["warm", "cold"]
    lives: tuple[tuple[Metered, ...], ...]
    note: str = ""


def restarted(
    job: Job, topology: Topology, repeats: int, progress: Callable[[str], None], *, cold: bool
) -> tuple[tuple[Metered, ...], ...]:
    """So many restarts, one after another. Before each one the checkpoint's files are read, or put out of the page cache."""
    lives = []
    cache = "cold" if cold else "warm"
    for number in range(repeats):
        progress(f"restart {number + 1} of {repeats} with a {cache} page cache")
        files = _files(job, topology)
        if cold:
            page_cache.evict(files)
        else:
            page_cache.warm(files)
        told = job.run(topology, MeasuringProgram(kind="restart"), "the restart")
        if any(metered.recovery is None or metered.recovery.chosen is None for metered in told):
            raise UsageError(
                "the restart found nothing to load although saves were acknowledged; "
                "`chaosckpt fuzz` with the same scenario finds out why"
            )
        lives.append(told)
    return tuple(lives)


def measured(job: Job, topology: Topology, repeats: int, progress: Callable[[str], None]) -> tuple[Restarts, ...]:
    """Warm restarts, then cold ones where the cache can be emptied; else the warm ones' note says why it can't."""
    lives = restarted(job, topology, repeats, progress, cold=False)
    why = why_not_cold(_files(job, topology))
    if why:
        return (Restarts("warm", lives, f"no cold figure: {why}"),)
    cold = restarted(job, topology, repeats, progress, cold=True)
    return Restarts("warm", lives), Restarts("cold", cold, INTERPRETER)


def figure(found: Restarts) -> Restart:
    """The figures of these restarts."""
    marked = all(metered.recovery is not None and metered.recovery.marked for life in found.lives for metered in life)
    return restart(found.cache, found.lives, "; ".join(filter(None, [found.note, "" if marked else UNMARKED])))


def why_not_cold(files: Sequence[Path]) -> str:
    """Why these files can't be put out of the page cache; empty where they can, and then they are."""
    if not files:
        return "no file lies on the storage tiers"
    try:
        stayed = page_cache.evict(files)
    except OSError as error:
        return f"the page cache can't be emptied or looked at: {error.strerror}"
    if stayed:
        stay = "file stays" if len(stayed) == 1 else "files stay"
        return f"{len(stayed)} of {len(files)} {stay} in memory after posix_fadvise(DONTNEED), as on tmpfs"
    return ""


def _files(job: Job, topology: Topology) -> list[Path]:
    return page_cache.files_below([directory for _, directory in job.directories(topology)])
