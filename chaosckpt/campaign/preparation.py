"""Preparing a campaign or a reproduction: golden runs on a local arena, unless the cache has a target's equal census."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from chaosckpt.campaign.script_arenas import open_script_arena
from chaosckpt.engine.golden import cache
from chaosckpt.engine.golden.census import measure
from chaosckpt.engine.golden.command import ScriptGolden
from chaosckpt.engine.golden.command_facts import CommandFacts
from chaosckpt.engine.runner import gate_mode
from chaosckpt.engine.runner.arena import Arena, local_arena
from chaosckpt.engine.runner.command_arena import ScriptArena
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.wire import storage
from chaosckpt.errors import UsageError
from chaosckpt.model.census import Census
from chaosckpt.model.scenario import Scenario

CENSUS = "census.json"


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario's census, and the modules that its ranks import, so that further fork servers needn't rehearse."""

    census: Census
    modules: tuple[str, ...]
    gate: str = "seccomp"
    facts: CommandFacts | None = None
    """Of a command: what its golden runs have shown beside the census."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What could not be judged, and why, in sentences."""
        return self.facts.remarks if self.facts is not None else ()

    @property
    def launch(self) -> str:
        """How a command is launched; empty for a target, whose scenario says so."""
        return "" if self.facts is None else "fork" if self.modules else "exec"

    def store(self, run: Path) -> None:
        """Keep the census with the run."""
        (run / CENSUS).write_bytes(msgspec.json.encode(self.census))


def prepare(scenario: Scenario, *, say: Callable[[str], None] = lambda text: None) -> Prepared:
    """The census of a scenario, from the cache or measured now. Raises UsageError when the job doesn't run without faults."""
    found = cached(scenario)
    if found is not None:
        return found
    if scenario.command is not None:
        return _prepare_command(scenario, say)
    say("starting the first node")
    mode = gate_mode.choose(scenario)
    arena = open_local(scenario)
    try:
        census = measure(scenario, arena, say=say, sweeping=True)
        prepared = Prepared(census=census, modules=arena.nodes[0].modules, gate=mode)
    finally:
        arena.close()
    cache.store(cache.directory(), cache.key(scenario), prepared)
    return prepared


def _prepare_command(scenario: Scenario, say: Callable[[str], None]) -> Prepared:
    """The same for an unmodified command. Raises UsageError where there is no gate: without one nothing of it would be seen."""
    if gate_mode.choose(scenario) != "seccomp":
        raise UsageError(
            "an unmodified command can only be watched through the gate, which this machine refuses; see `chaosckpt doctor`"
        )
    say("starting the command's node")
    arena = open_script_arena(scenario)

    def warmed(cold: ScriptArena, modules: tuple[str, ...]) -> ScriptArena:
        nonlocal arena
        cold.close()
        arena = open_script_arena(scenario, modules)
        return arena

    try:
        golden_runs = ScriptGolden(scenario, arena, warmed, say)
        census, facts = golden_runs.measure()
        return Prepared(census=census, modules=golden_runs.modules, facts=facts)
    finally:
        arena.close()


def effective(scenario: Scenario, prepared: Prepared) -> Scenario:
    """The scenario with what its golden runs have told of the command."""
    if scenario.command is None or prepared.facts is None:
        return scenario
    command = msgspec.structs.replace(scenario.command, checkpoints=prepared.facts.checkpoints)
    return msgspec.structs.replace(scenario, command=command)


def open_arena(scenario: Scenario, prepared: Prepared | None) -> Arena:
    """An arena on this machine, warm as far as it is known how."""
    modules = prepared.modules if prepared is not None else ()
    return open_script_arena(scenario, modules) if scenario.command is not None else open_local(scenario, modules)


def deadlines_of(census: Census) -> Deadlines:
    """Waiting times for trials of this census, scaled from its slowest golden run."""
    return Deadlines(golden_seconds=max(run.duration_seconds for run in census.runs))


def cached(scenario: Scenario) -> Prepared | None:
    """What an equal scenario, with equal code and versions, was prepared as before.

    Never a command's: what it imports, reads and is told by its environment is known to nobody, and golden runs of an earlier
    version of it would make findings of everything that was changed since.
    """
    if scenario.command is not None:
        return None
    found = cache.load(cache.directory(), cache.key(scenario), Prepared)
    return found if found is not None and found.gate == gate_mode.choose(scenario) else None


def open_local(scenario: Scenario, modules: tuple[str, ...] = ()) -> Arena:
    """An arena without Ray, on this machine."""
    directory = storage.make_below(scenario.storage.shared)
    try:
        return local_arena(scenario, directory, gate=gate_mode.choose(scenario) == "seccomp", modules=modules)
    except BaseException:  # an interrupt, too, must not leave the directory behind
        storage.remove(directory)
        raise
