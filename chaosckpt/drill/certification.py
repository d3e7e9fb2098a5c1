"""How what was seen in a drill becomes a certificate: each step with its evidence, and no more than was tested. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chaosckpt.drill import boundaries as drill_boundaries
from chaosckpt.drill import steps as drill_steps
from chaosckpt.drill.certificate import AllocatedProcess, Certificate
from chaosckpt.drill.evidence import Findings, trajectory
from chaosckpt.drill.restart import ObservedRestart
from chaosckpt.engine.wire.reports import RankEnvironment
from chaosckpt.measure.measurement import FileSystem
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.scenario import Scenario

LIMITS = (
    "Files outside the storage tiers and the temporary directory, such as at fixed paths in /tmp or /dev/shm, were not removed.",
    "All allocations ran on this machine, under one kernel and one user.",
    "A kill keeps written data, synced or not, so a power loss was not tested.",
)


class Carried(NamedTuple):
    """A restart with what was found in it."""

    restart: ObservedRestart
    findings: Findings


class Seen(NamedTuple):
    """All that a drill saw."""

    known_step: int
    later_step: int
    gate: str
    main: Carried
    interruptions: tuple[Findings, ...]
    changes: tuple[Carried, ...]
    elsewhere: Carried | None
    file_systems: tuple[FileSystem, ...] = ()


def certificate(scenario: Scenario, guarantees: Sequence[Guarantee], seen: Seen) -> Certificate:
    """The certificate of a drill of this scenario, whose target is held to these guarantees."""
    restart, findings = seen.main
    tolerance = scenario.drill.tolerance
    interrupted = tuple(drill_steps.interruption(one) for one in seen.interruptions)
    steps = (
        drill_steps.saved(restart, findings),
        drill_steps.ended(scenario, restart),
        drill_steps.restored(restart, findings),
        drill_steps.trained(scenario, restart, findings),
        drill_steps.interrupted(scenario, interrupted, seen.later_step, seen.gate),
        drill_steps.resized(scenario, seen.changes),
        drill_steps.elsewhere(scenario, seen.elsewhere),
    )
    return Certificate(
        scenario=scenario.name,
        target=scenario.target.use,
        strategy=scenario.workload.strategy,
        topology=str(scenario.topology.topologies[0]),
        guarantees=tuple(guarantees),
        known_step=seen.known_step,
        later_step=seen.later_step,
        gate=seen.gate,
        steps=steps,
        boundaries=drill_boundaries.boundaries(guarantees, steps, restart),
        interruptions=interrupted,
        trajectory=trajectory(findings, tolerance),
        processes=_processes(seen),
        versions=_versions(seen),
        file_systems=seen.file_systems,
        limits=LIMITS,
    )


def _processes(seen: Seen) -> tuple[AllocatedProcess, ...]:
    named = [("saved", seen.main.restart.old), ("restored", seen.main.restart.new)]
    named += [(f"restored with {carried.restart.topology}", carried.restart.new) for carried in seen.changes]
    if seen.elsewhere is not None:
        named.append(("restored elsewhere", seen.elsewhere.restart.new))
    return tuple(
        _process(name, one) for name, allocated in named if allocated is not None for one in allocated.environments
    )


def _process(allocation: str, one: RankEnvironment) -> AllocatedProcess:
    return AllocatedProcess(
        allocation=allocation,
        rank=one.rank,
        pid=one.pid,
        executable=one.executable,
        environment=one.environment,
        temporary=one.temporary,
        filters=one.filters,
    )


def _versions(seen: Seen) -> dict[str, dict[str, str]]:
    found = {}
    sides = [("saved", seen.main.restart.old), ("restored", seen.main.restart.new)]
    if seen.elsewhere is not None:
        sides.append(("restored elsewhere", seen.elsewhere.restart.new))
    for name, allocated in sides:
        if allocated is not None and allocated.environments:
            found[name] = allocated.environments[0].versions
    return found
