"""The ladder: one run per rank, stepped operation by operation, that tells how far the peers get at each."""

from __future__ import annotations

import msgspec

from chaosckpt.engine.arena import Arena
from chaosckpt.engine.attempt import AttemptRun
from chaosckpt.engine.deadlines import Deadlines
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.reports import Held, Stepping
from chaosckpt.model.census import GoldenRun
from chaosckpt.model.operation import Address
from chaosckpt.model.topology import Topology


class Rung(msgspec.Struct, frozen=True):
    """What was seen while one operation was held before it happened, with all at rest.

    `latest` are the last few operations of each rank, oldest first; `step` is the last training step that the held
    rank's training thread came to, 0 where it came to none.
    """

    latest: tuple[tuple[Address, ...], ...]
    step: int


Rungs = dict[Address, Rung]


class _LadderRun(AttemptRun):
    """Holds every operation of one rank, waits for rest, notes how far each rank has come, lets go."""

    def __init__(self, arena: Arena, order: AttemptOrder, topology: Topology, deadlines: Deadlines, steps: int) -> None:
        super().__init__(arena, order, topology, (), lambda event: None, deadlines)
        self.rungs: Rungs = {}
        self._steps = steps
        self._step = 0
        self._waiting: list[Address] = []

    def _hold_steps(self) -> dict[int, tuple[int, ...]]:
        return {} if self._order.step_rank is None else {self._order.step_rank: tuple(range(1, self._steps + 1))}

    def stepping(self, message: Stepping) -> None:
        """Note how far the training thread has come."""
        self._step = message.step

    def _hold(self, held: Held) -> None:
        self._waiting.append(held.operation.address)
        super()._hold(held)

    def _land(self, index: int) -> None:
        self.await_rest()
        latest: dict[int, tuple[Address, ...]] = {}
        for node in self._nodes:
            for rank, addresses in node.latest().items():
                latest[rank] = tuple(addresses)
        # With several threads more than one operation may be held by now.
        rung = Rung(tuple(latest[rank] for rank in range(self.topology.world_size)), self._step)
        self.rungs.update(dict.fromkeys(self._waiting, rung))
        self._waiting.clear()
        self._resume(index)


def climb(arena: Arena, order: AttemptOrder, topology: Topology, deadlines: Deadlines, steps: int) -> Rungs:
    """How far the peers get at every operation of every rank, and its own training, which has this many steps.

    `order` is the golden attempt's. The storage is emptied before each climb, so the attempt must be one from the start.
    Empty where the job doesn't end well when it is stepped.
    """
    table: Rungs = {}
    for rank in range(topology.world_size):
        arena.reset()
        stepped = msgspec.structs.replace(
            order, step_rank=rank, record="nothing", collective_timeout_seconds=deadlines.rest_seconds * 4
        )
        run = _LadderRun(arena, stepped, topology, deadlines, steps)
        if run.run() != "finished":
            # A job that fails when one rank is slow is the campaign's to find, which can do with less than reach.
            return {}
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
            last[rank] = tuple(next((place[at] for at in reversed(tail) if at in place), 0) for tail in rung.latest)
        if rank not in last:
            return ()
        counts = list(last[rank])
        counts[rank] = done[rank]
        found.append(tuple(counts))
        done[rank] += 1
    return tuple(found)


def training(run: GoldenRun, rungs: Rungs) -> tuple[int, ...]:
    """The step that the training thread of each point's rank comes to while the point is held; 0 where that isn't known."""
    return tuple(rungs[point.address].step if point.address in rungs else 0 for point in run.points)
