"""Preparing a campaign or a reproduction: golden runs on a local arena, unless the cache has an equal census."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from chaosckpt.engine import census_cache, gate_mode, golden, storage
from chaosckpt.engine.arena import Arena, local_arena
from chaosckpt.engine.deadlines import Deadlines
from chaosckpt.model.census import Census
from chaosckpt.model.scenario import Scenario

CENSUS = "census.json"


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario's census, and the modules that its ranks import, so that further fork servers needn't rehearse."""

    census: Census
    modules: tuple[str, ...]
    gate: str = "seccomp"

    def store(self, run: Path) -> None:
        """Keep the census with the run."""
        (run / CENSUS).write_bytes(msgspec.json.encode(self.census))


def prepare(scenario: Scenario, *, say: Callable[[str], None] = lambda text: None) -> Prepared:
    """The census of a scenario, from the cache or measured now. Raises UsageError when the job doesn't run without faults."""
    found = cached(scenario)
    if found is not None:
        return found
    say("starting the first node")
    mode = gate_mode.choose(scenario)
    arena = open_local(scenario)
    try:
        census = golden.measure(scenario, arena, say=say, sweeping=True)
        prepared = Prepared(census=census, modules=arena.nodes[0].modules, gate=mode)
    finally:
        arena.close()
    census_cache.store(census_cache.directory(), census_cache.key(scenario), prepared)
    return prepared


def deadlines_of(census: Census) -> Deadlines:
    """Waiting times for trials of this census, scaled from its slowest golden run."""
    return Deadlines(golden_seconds=max(run.duration_seconds for run in census.runs))


def cached(scenario: Scenario) -> Prepared | None:
    """What an equal scenario, with equal code and versions, was prepared as before."""
    found = census_cache.load(census_cache.directory(), census_cache.key(scenario), Prepared)
    return found if found is not None and found.gate == gate_mode.choose(scenario) else None


def open_local(scenario: Scenario, modules: tuple[str, ...] = ()) -> Arena:
    """An arena without Ray, on this machine."""
    directory = storage.make_below(scenario.storage.shared)
    try:
        return local_arena(scenario, directory, gate=gate_mode.choose(scenario) == "seccomp", modules=modules)
    except BaseException:
        storage.remove(directory)
        raise
