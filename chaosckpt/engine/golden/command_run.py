"""One run of a command without faults, with all that is to be seen of it."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from chaosckpt.commands.launches import Executed, Warmth
from chaosckpt.commands.naming import FileSeen
from chaosckpt.commands.output import matches, told
from chaosckpt.engine.golden.waiting import Waiting
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.attempt import AttemptRun
from chaosckpt.engine.runner.command_arena import files_in_out, program_of, result_of
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.model import journal as j
from chaosckpt.model.census import Pauses
from chaosckpt.model.observed import ObservedStep
from chaosckpt.model.operation import Operation
from chaosckpt.model.scenario import CommandSettings
from chaosckpt.model.topology import Topology

COLD = Warmth()
_PATIENT = Deadlines(golden_seconds=60.0, floor_seconds=30.0)


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the command, with all that is to be seen of it."""

    outcome: str
    seconds: float
    trace: tuple[Operation, ...] = ()
    files: tuple[FileSeen, ...] = ()
    output: str = ""
    refused: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    result: str | None = None
    told: tuple[j.Probed, ...] = ()
    pauses: Pauses = Pauses()
    waited: str = ""
    """How it stood still, if it did for long."""
    observed: tuple[ObservedStep, ...] = ()
    """What its ranks trained."""
    executed: tuple[Executed, ...] = ()
    """How its ranks were started, where that was asked."""

    def said(self, pattern: str | None, what: str) -> list[int | None]:
        """The numbers in the lines that match, in order, and those that were told by the probe."""
        return [*(step for step, _ in matches(self.output, pattern)), *(at.step for at in self.told if at.what == what)]


def order_of(
    arena: Arena, command: CommandSettings, topology: Topology, warmth: Warmth = COLD, *, resuming: bool = False
) -> AttemptOrder:
    """What the node is told for a run of the command without faults."""
    return AttemptOrder(
        attempt=int(resuming),
        intent="resume" if resuming else "start",
        world_size=topology.world_size,
        places=(),
        program=program_of(arena, command, warmth, topology.world_size, resuming=resuming),
    )


def run_command(
    arena: Arena,
    command: CommandSettings,
    topology: Topology,
    warmth: Warmth = COLD,
    *,
    resuming: bool = False,
    record: str = "operations",
    learns: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> Run:
    """Run the command once, without faults, on the storage as it is. `progress` is told where it stands still.

    With `learns` it is noted how its ranks are started, and what they import.
    """
    order = msgspec.structs.replace(order_of(arena, command, topology, warmth, resuming=resuming), record=record)
    if learns:
        order = msgspec.structs.replace(order, program=msgspec.structs.replace(order.program, learns=True))
    events: list[j.AnyEvent] = []
    started = time.monotonic()
    waiting = Waiting("a golden recovery" if resuming else "a golden run", progress)
    outcome = AttemptRun(arena, order, topology, (), events.append, _PATIENT, listener=waiting).run()
    seconds = time.monotonic() - started
    node = arena.nodes[0]
    rows = [row for rank in node.records() for row in rank]
    output = node.output()
    return Run(
        outcome=outcome,
        seconds=seconds,
        trace=tuple(row.operation for row in sorted(rows, key=lambda row: row.order)),
        files=tuple(files_in_out(arena)),
        output=output.printed,
        refused=output.refused,
        modules=output.modules,
        result=result_of(arena, command),
        told=tuple(told(output.told, int(resuming))),
        pauses=node.pauses(),
        waited=waiting.last,
        executed=output.executed,
        observed=output.observed,
    )
