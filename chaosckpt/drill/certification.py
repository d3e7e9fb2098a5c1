"""How what was seen in a drill becomes a certificate: each step with its evidence, and no more than was tested. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from chaosckpt.drill import steps as drill_steps
from chaosckpt.drill.certificate import AllocatedProcess, Boundary, Certificate, StepResult, worst
from chaosckpt.drill.evidence import Findings, trajectory
from chaosckpt.drill.restart import ObservedRestart
from chaosckpt.engine.wire.reports import RankEnvironment
from chaosckpt.measure.measurement import FileSystem
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.phrasing import plural
from chaosckpt.model.scenario import Scenario

LIMITS = (
    "Files outside the storage tiers and the temporary directory, such as at fixed paths in /tmp or /dev/shm, were not removed.",
    "All allocations ran on this machine, under one kernel and one user.",
    "A kill keeps written data, synced or not, so a power loss was not tested.",
)
_NOT_HERE: tuple[tuple[str, Guarantee | None, str], ...] = (
    (
        "loss of a node while the job runs",
        "node-loss",
        "a drill ends jobs in order or kills all ranks; `chaosckpt fuzz` takes nodes away",
    ),
    ("loss of power", "power-loss", "the drill kept all written data, synced or not"),
    (
        "files damaged at rest",
        "integrity",
        "the drill damaged no file; `chaosckpt fuzz` does, if the scenario names bit-flip or truncation",
    ),
    ("loss of shared storage", None, "the drill kept shared storage"),
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
        boundaries=_boundaries(guarantees, steps, restart),
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


def _boundaries(
    guarantees: Sequence[Guarantee], steps: Sequence[StepResult], restart: ObservedRestart
) -> tuple[Boundary, ...]:
    """One entry a failure boundary: those of the drill's steps, then those that a drill never crosses."""
    by_name = {step.name: step for step in steps}
    restored, trained = by_name["restore and verify"], by_name["train on"]
    fresh = restored.outcome if restored.outcome != "survived" else worst([restored.outcome, trained.outcome])
    words = restored.sentence if restored.outcome != "survived" else f"{restored.sentence} {trained.sentence}"
    files = sum(restart.local_files.values())
    found = [
        Boundary(
            name="end of the job, restart in a fresh allocation", outcome=fresh, sentence=words, steps=(1, 2, 3, 4)
        ),
        Boundary(
            name="loss of node-local storage",
            guarantee="local-storage-loss",
            outcome=fresh if files and restart.new is not None else "not tested",
            sentence=f"The drill deleted {plural(files, 'file')} from the node-local storage of the old nodes. {words}"
            if files
            else "The target had stored nothing on node-local storage.",
            steps=(2, 3) if files else (),
        ),
        _of_step(by_name["interrupt a later save"], "kill of all ranks in the middle of a save", "process-crash"),
        _of_step(by_name["world-size change"], "restart with another number of ranks", "world-size-change"),
        _of_step(by_name["another interpreter"], "restart under another interpreter or dependency set", None),
    ]
    found += [
        Boundary(name=name, guarantee=guarantee, outcome="not tested", sentence=f"{why[0].upper()}{why[1:]}.")
        for name, guarantee, why in _NOT_HERE
    ]
    return tuple(_promised(boundary, guarantees) for boundary in found)


def _of_step(step: StepResult, name: str, guarantee: Guarantee | None) -> Boundary:
    return Boundary(name=name, guarantee=guarantee, outcome=step.outcome, sentence=step.sentence, steps=(step.number,))


def _promised(boundary: Boundary, guarantees: Sequence[Guarantee]) -> Boundary:
    return msgspec.structs.replace(boundary, promised=boundary.guarantee in guarantees)
