"""The ladder: one run per rank, stepped operation by operation, that tells how far the peers get at each."""

from __future__ import annotations

import msgspec

from chaosckpt.engine.arena import Arena
from chaosckpt.engine.attempt import AttemptRun
from chaosckpt.engine.deadlines import Deadlines
from chaosckpt.engine.messages import AttemptOrder
from chaosckpt.errors import HarnessError
from chaosckpt.model.census import GoldenRun
from chaosckpt.model.operation import Address
from chaosckpt.model.topology import Topology

Rungs = dict[Address, tuple[tuple[Address, ...], ...]]
"""For each operation, held before it happens with all at rest: the last few operations of each rank, oldest first."""


class _LadderRun(AttemptRun):
    """Holds every operation of one rank, waits for rest, notes how far each rank has come, lets go."""

    def __init__(self, arena: Arena, order: AttemptOrder, topology: Topology, deadlines: Deadlines) -> None:
        super().__init__(arena, order, topology, (), lambda event: None, deadlines)
        self.rungs: Rungs = {}

    def _land(self, index: int) -> None:
        held = self._held.get(index)
        if not held:
            return  # Several threads were held at once, and let go with the first of them.
        self.await_rest()
        latest: dict[int, tuple[Address, ...]] = {}
        for node in self._nodes:
            for rank, addresses in node.call("latest").items():
                latest[int(rank)] = msgspec.convert(addresses, tuple[Address, ...])
        place = held[min(held)].operation.address
        self.rungs[place] = tuple(latest[rank] for rank in range(self.topology.world_size))
        self._resume(index)


def climb(arena: Arena, order: AttemptOrder, topology: Topology, deadlines: Deadlines) -> Rungs:
    """How far the peers get at every operation of every rank.

    `order` is the golden attempt's. The storage is emptied before each climb, so the attempt must be one from the start.
    Raises HarnessError where a climb doesn't come to its end.
    """
    table: Rungs = {}
    for rank in range(topology.world_size):
        arena.reset()
        stepped = msgspec.structs.replace(
            order, step_rank=rank, record="nothing", collective_timeout_seconds=deadlines.rest_seconds * 4
        )
        run = _LadderRun(arena, stepped, topology, deadlines)
        if run.run() != "finished":
            raise HarnessError(f"the job did not finish while rank {rank} was stepped through its operations")
        table.update(run.rungs)
    return table


def reach(run: GoldenRun, rungs: Rungs) -> tuple[tuple[int, ...], ...]:
    """The reach of every point of a run, as counts of the run's own operations of each rank. Empty where the climb knows too little.

    An operation that comes or doesn't as ranks race may lack a rung: it has its rank's last one.
    """
    place: dict[Address, int] = {}
    count = [0] * run.topology.world_size
    for point in run.points:
        rank = point.address.rank
        count[rank] += 1
        place[point.address] = count[rank]
    found: list[tuple[int, ...]] = []
    last: dict[int, tuple[int, ...]] = {}
    done = [0] * run.topology.world_size
    for point in run.points:
        rank = point.address.rank
        rung = rungs.get(point.address)
        if rung is not None:
            last[rank] = tuple(next((place[at] for at in reversed(tail) if at in place), 0) for tail in rung)
        if rank not in last:
            return ()
        counts = list(last[rank])
        counts[rank] = done[rank]
        found.append(tuple(counts))
        done[rank] += 1
    return tuple(found)
