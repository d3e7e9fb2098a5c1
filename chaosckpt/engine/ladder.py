"""The ladder: one run per rank, stepped operation by operation, that tells how far the peers get at each."""

from __future__ import annotations

from chaosckpt.engine.arena import Arena
from chaosckpt.engine.attempt import AttemptRun
from chaosckpt.engine.deadlines import Deadlines
from chaosckpt.engine.messages import AttemptOrder
from chaosckpt.errors import HarnessError
from chaosckpt.model.topology import Topology


class _LadderRun(AttemptRun):
    """Holds every operation of one rank, waits for rest, notes what each rank has done, lets go."""

    def __init__(self, arena: Arena, order: AttemptOrder, topology: Topology, deadlines: Deadlines) -> None:
        super().__init__(arena, order, topology, (), lambda event: None, deadlines)
        self.rungs: dict[int, tuple[int, ...]] = {}

    def _land(self, index: int) -> None:
        self.await_rest()
        done = self.counts()
        assert self._order.step_rank is not None
        self.rungs[done[self._order.step_rank]] = done
        self._resume(index)


def climb(
    arena: Arena, order: AttemptOrder, topology: Topology, deadlines: Deadlines
) -> dict[tuple[int, int], tuple[int, ...]]:
    """Reach of every operation: (rank, its own count of operations before it) -> operations performed by each rank, at rest.

    `order` is the golden attempt's. The storage is emptied before each climb, so the attempt must be one from the start.
    """
    table: dict[tuple[int, int], tuple[int, ...]] = {}
    for rank in range(topology.world_size):
        arena.reset()
        stepped = AttemptOrder(
            attempt=order.attempt,
            intent=order.intent,
            world_size=order.world_size,
            places=(),
            collective_timeout_seconds=deadlines.rest_seconds * 4,
            step_rank=rank,
        )
        run = _LadderRun(arena, stepped, topology, deadlines)
        if run.run() != "finished":
            raise HarnessError(f"the job did not finish while rank {rank} was stepped through its operations")
        for count, done in run.rungs.items():
            table[(rank, count)] = done
    return table
