"""Preparing a campaign or a reproduction: golden runs on this machine, unless the cache has those of an equal scenario."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from chaosckpt.engine.golden import cache
from chaosckpt.engine.runner import gate_mode
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.subjects import Prepared, subject_of
from chaosckpt.engine.wire import versions
from chaosckpt.model.census import Census, longest_pauses
from chaosckpt.model.scenario import Scenario

CENSUS = "census.json"


def prepare(scenario: Scenario, *, progress: Callable[[str], None] = lambda text: None) -> Prepared:
    """What golden runs show of a scenario, from the cache or run now. Raises UsageError when the job doesn't run without faults."""
    found = cached(scenario)
    if found is not None:
        return found
    subject = subject_of(scenario)
    prepared = subject.golden_runs(progress)
    code = subject.sources(prepared.modules)
    environment = prepared.census.environment | versions.of(*code.packages)
    census = msgspec.structs.replace(prepared.census, environment=environment)
    prepared = msgspec.structs.replace(prepared, census=census, code=code.digest())
    if subject.cached:
        cache.store(cache.directory(), cache.key(scenario, subject.sources()), prepared)
    return prepared


def cached(scenario: Scenario) -> Prepared | None:
    """What an equal scenario, with equal code and versions, was prepared as before; None where that can't be known."""
    subject = subject_of(scenario)
    if not subject.cached:
        return None
    found = cache.load(cache.directory(), cache.key(scenario, subject.sources()), Prepared)
    if found is None or found.gate != gate_mode.choose(scenario):
        return None
    # What is imported by names that are known at run time only isn't in the key.
    return found if found.code == subject.sources(found.modules).digest() else None


def store_census(census: Census, run: Path) -> None:
    """Keep the census with the run."""
    (run / CENSUS).write_bytes(msgspec.json.encode(census))


def deadlines_of(census: Census) -> Deadlines:
    """Waiting times for trials of this census, scaled from its slowest golden run."""
    return Deadlines(
        golden_seconds=max(run.duration_seconds for run in census.runs),
        pauses=longest_pauses(run.pauses for run in census.runs),
    )
