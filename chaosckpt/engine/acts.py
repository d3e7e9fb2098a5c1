"""What faults do to a running job: the acts of a JobControl, carried out on the nodes of one attempt."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from chaosckpt.engine.deadlines import Deadlines
from chaosckpt.engine.wire.reports import Cause, Held
from chaosckpt.model import journal as j
from chaosckpt.model.disturbance import Disturbance
from chaosckpt.model.topology import Topology

if TYPE_CHECKING:
    from chaosckpt.engine.arena import Arena
    from chaosckpt.engine.runner.node_client import Node

TICK_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 0.002
Record = Callable[[j.AnyEvent], None]


class NotArrived(Exception):
    """The job did not come to the place where a fault was to strike."""


class Acts:
    """The acts of an attempt's faults; the attempt itself (chaosckpt/engine/attempt.py) launches and watches the job."""

    topology: Topology
    failure_groups: Sequence[Sequence[int]]
    _arena: Arena
    _nodes: list[Node]
    _attempt: int
    _record: Record
    _deadlines: Deadlines
    _alive: set[int]
    _stopped: set[int]
    _held: dict[int, dict[int, Held]]
    _current: int
    _survivors_until: float | None
    _nothing_there: str

    def _pump(self, timeout_seconds: float) -> None:
        raise NotImplementedError

    def _drain(self) -> None:
        raise NotImplementedError

    def _gone(self, rank: int, status: int, by: str, stderr_tail: str = "") -> None:
        raise NotImplementedError

    def _strikes_now(self) -> None:
        """Journal that the current fault landed, before anything that follows from it is told."""
        raise NotImplementedError

    def _at_rest(self) -> bool:
        if len(self._nodes) == 1:
            return self._nodes[0].quiescent()
        first = [node.sample() for node in self._nodes]
        return None not in first and first == [node.sample() for node in self._nodes]

    def await_rest(self) -> None:
        """See JobControl."""
        until = time.monotonic() + self._deadlines.rest_seconds
        while not self._at_rest():
            if time.monotonic() > until:
                raise NotArrived("the other ranks did not come to rest")
            self._pump(LOOK_AGAIN_SECONDS)
        self._drain()

    def kill_job(self) -> None:
        """See JobControl. Every gate is shut before the first process dies, so that nobody's death is another's chance."""
        for node in self._nodes:
            node.freeze()
        self._kill(None, "fault")

    def _kill(self, ranks: Sequence[int] | None, by: Cause) -> bool:
        found = [node.kill(ranks, by) for node in self._nodes]
        return any(found)

    def kill_rank(self, rank: int) -> None:
        """See JobControl."""
        if not self._kill([rank], "fault"):
            raise NotArrived(f"no process of rank {rank} was found")
        self._let_survivors_live()

    def kill_process(self) -> None:
        """See JobControl."""
        for node in self._nodes:
            node.kill_holder(self._current)
        self._let_survivors_live()

    def stop_rank(self, rank: int) -> None:
        """See JobControl."""
        if not any(node.suspend(rank) for node in self._nodes):
            raise NotArrived(f"no process of rank {rank} was found")
        self._strikes_now()
        self._stopped.add(rank)
        self._let_survivors_live()

    def await_survivors(self) -> None:
        """See JobControl."""
        while self._alive - self._stopped and time.monotonic() < (self._survivors_until or 0):
            self._pump(TICK_SECONDS / 2)

    def continue_rank(self, rank: int) -> None:
        """See JobControl."""
        self._stopped.discard(rank)
        for node in self._nodes:
            node.wake(rank)
        self._resume(self._current)
        self._let_survivors_live()

    def _let_survivors_live(self) -> None:
        self._survivors_until = time.monotonic() + self._deadlines.grace_seconds

    def terminate(self, ranks: Sequence[int]) -> None:
        """See JobControl."""
        for node in self._nodes:
            node.terminate(ranks)

    def lose_node(self, node: int) -> None:
        """See JobControl."""
        if node >= len(self.topology.ranks):
            return
        self._drain()
        ranks = list(self.topology.ranks_on(node))
        carrier = self._arena.nodes[node]
        if self._arena.dedicated:
            self._nodes.remove(carrier)
            # The process group of the machine that is gone: its ranks die with it, and nobody is left there to report it.
            files = carrier.lose(self._arena.tiers(node)["local"])
            self._arena.lose(node)
            for rank in ranks:
                if rank in self._alive:
                    self._gone(rank, 9, "fault")
        else:
            self._kill(ranks, "fault")
            files = carrier.drop(self._arena.tiers(node)["local"])
            self._arena.lose(node)
        self._record(j.StorageDestroyed(attempt=self._attempt, tier="local", node=node, files=files, cause="node-loss"))
        self._let_survivors_live()

    def activate(self, on: bool = True) -> None:
        """See JobControl."""
        for node in self._nodes:
            node.activate(self._current, on)
        if on:
            self._strikes_now()

    def resume(self) -> None:
        """See JobControl."""
        self._resume(self._current)

    def _resume(self, fault: int) -> None:
        self._held.pop(fault, None)
        for node in self._nodes:
            node.resume(fault)

    def run_for(self, seconds: float) -> None:
        """See JobControl."""
        until = time.monotonic() + seconds
        while self._alive and (left := until - time.monotonic()) > 0:
            self._pump(min(left, TICK_SECONDS / 2))

    # Between two attempts

    def drop_storage(self, tier: str, node: int | None = None) -> int:
        """See JobControl."""
        carrier = self._arena.nodes[node or 0]
        files = carrier.drop(self._arena.tiers(node or 0)[tier])
        cause = "shared-storage-loss" if tier == "shared" else "local-storage-loss"
        self._record(j.StorageDestroyed(attempt=self._attempt, tier=tier, node=node, files=files, cause=cause))  # type: ignore[arg-type]
        return files

    def disturb(self, tier: str, node: int | None, disturbance: Disturbance) -> tuple[str, ...]:
        """See JobControl."""
        carrier = self._arena.nodes[node or 0]
        found = carrier.mutate(tier, self._arena.tiers(node or 0)[tier], disturbance)
        if not found:
            self._nothing_there = f"there was nothing on {tier} storage that it could strike"
        for one in found:
            self._record(
                j.StorageDisturbed(
                    attempt=self._attempt,
                    tier=tier,
                    node=node,
                    path=one.path,
                    what=one.what,
                    damages=disturbance.damages,
                )
            )
        return tuple(f"{one.path}: {one.what}" for one in found)
