"""Arenas to measure on: nodes of this machine, with and without a gate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from chaosckpt.engine.runner.arena import Arena, open_local
from chaosckpt.engine.runner.attempt import AttemptRun
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.reports import Labelled
from chaosckpt.errors import HarnessError
from chaosckpt.model import journal as j
from chaosckpt.model.scenario import RunSettings, Scenario, TargetSettings, TopologySettings, WorkloadSettings

PATIENT = Deadlines(golden_seconds=20.0)
_CHECKPOINTERS = Path(__file__).with_name("checkpointers.py")


def scenario(checkpointer: str, workload: WorkloadSettings, gate: Literal["seccomp", "none"]) -> Scenario:
    """Two ranks on one node each, with a class of benchmarks/checkpointers.py."""
    return Scenario(
        name=f"benchmark-{gate}",
        target=TargetSettings(use=f"{_CHECKPOINTERS}:{checkpointer}"),
        workload=workload,
        topology=TopologySettings(ranks=((1, 1),)),
        run=RunSettings(gate=gate),
    )


@contextmanager
def both(
    checkpointer: str, workload: WorkloadSettings
) -> Iterator[tuple[tuple[Scenario, Arena], tuple[Scenario, Arena]]]:
    """An arena with a gate and one without, alike in all else."""
    gated, bare = scenario(checkpointer, workload, "seccomp"), scenario(checkpointer, workload, "none")
    with opened(gated) as first, opened(bare, first.nodes[0].modules) as second:
        yield (gated, first), (bare, second)


@contextmanager
def opened(found: Scenario, modules: tuple[str, ...] = ()) -> Iterator[Arena]:
    """An arena on this machine, closed and removed at the end."""
    arena = open_local(found, modules)
    try:
        yield arena
    finally:
        arena.close()


def run_once(arena: Arena, found: Scenario, record: Literal["nothing", "operations"] = "nothing") -> None:
    """One attempt from the start, without faults. Raises HarnessError when the job doesn't finish."""
    arena.reset()
    topology = found.topology.topologies[0]
    order = AttemptOrder(attempt=0, intent="start", world_size=topology.world_size, places=(), record=record)
    events: list[j.AnyEvent] = []
    outcome = AttemptRun(arena, order, topology, (), events.append, PATIENT).run()
    if outcome != "finished":
        raise HarnessError(f"the job that is measured {outcome}, though nothing struck it: {events}")


def operations(arena: Arena, found: Scenario) -> list[Labelled]:
    """The operations of rank 0 in an attempt without faults: system calls, or stage boundaries where there is no gate."""
    run_once(arena, found, record="operations")
    recorded = [node.records() for node in arena.distinct()]
    return [row for ranks in recorded for rows in ranks for row in rows if row.operation.address.rank == 0]
