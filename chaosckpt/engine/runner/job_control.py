"""What a fault may do to a running job: the JobControl of one fault, carried out on the nodes of its attempt."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.ranks import TICK_SECONDS, NotArrived, Ranks, Record
from chaosckpt.model import journal as j
from chaosckpt.model.mutation import Mutation
from chaosckpt.model.phrasing import describe_path, describe_tier


class FaultControl:
    """The JobControl (chaosckpt/model/fault.py) that one fault of an attempt is given.

    `took_effect` journals that the fault was injected, before anything that follows from it is told; `release` lets go what it holds.
    """

    def __init__(
        self,
        fault: int,
        ranks: Ranks,
        attempt: int,
        record: Record,
        deadlines: Deadlines,
        failure_groups: Sequence[Sequence[int]],
        took_effect: Callable[[], None],
        release: Callable[[], None],
    ) -> None:
        self.topology = ranks.topology
        self.failure_groups = failure_groups
        self.nothing_there = ""
        """Why there was nothing that it could have changed between two attempts, in words."""
        self._fault = fault
        self._ranks = ranks
        self._arena = ranks.arena
        self._attempt = attempt
        self._record = record
        self._deadlines = deadlines
        self._took_effect = took_effect
        self._release = release

    # While ranks run

    def await_rest(self) -> None:
        """See JobControl."""
        self._ranks.await_quiescence()

    def kill_job(self) -> None:
        """See JobControl. Every gate is shut before the first process dies, so that nobody's death is another's chance."""
        for node in self._ranks.nodes:
            node.freeze()
        self._ranks.kill(None, "fault")

    def kill_rank(self, rank: int) -> None:
        """See JobControl."""
        if not self._ranks.kill([rank], "fault"):
            raise NotArrived(f"rank {rank} had no process left")
        self._let_survivors_live()

    def kill_process(self) -> None:
        """See JobControl."""
        for node in self._ranks.nodes:
            node.kill_holder(self._fault)
        self._let_survivors_live()

    def stop_rank(self, rank: int) -> None:
        """See JobControl."""
        if not any(node.suspend(rank) for node in self._ranks.nodes):
            raise NotArrived(f"rank {rank} had no process left")
        self._took_effect()
        self._ranks.stopped.add(rank)
        self._let_survivors_live()

    def await_survivors(self) -> None:
        """See JobControl."""
        ranks = self._ranks
        while ranks.alive - ranks.stopped and time.monotonic() < (ranks.survivors_until or 0):
            ranks.pump(TICK_SECONDS / 2)

    def await_peers(self, rank: int) -> None:
        """See JobControl."""
        until = time.monotonic() + self._deadlines.grace_seconds
        while self._ranks.alive - {rank} and time.monotonic() < until:
            self._ranks.pump(TICK_SECONDS / 2)

    def continue_rank(self, rank: int) -> None:
        """See JobControl."""
        self._ranks.stopped.discard(rank)
        for node in self._ranks.nodes:
            node.wake(rank)
        self._release()
        self._let_survivors_live()

    def _let_survivors_live(self) -> None:
        self._ranks.survivors_until = time.monotonic() + self._deadlines.grace_seconds

    def terminate(self, ranks: Sequence[int]) -> None:
        """See JobControl."""
        for node in self._ranks.nodes:
            node.terminate(ranks, "fault")

    def lose_node(self, node: int) -> None:
        """See JobControl."""
        if node >= len(self.topology.ranks):
            return
        self._ranks.drain()
        ranks = list(self.topology.ranks_on(node))
        carrier = self._arena.nodes[node]
        if self._arena.dedicated:
            self._ranks.nodes.remove(carrier)
            # The process group of the machine that is gone: its ranks die with it, and nobody is left there to report it.
            files = carrier.lose(self._arena.tiers(node)["local"])
            self._arena.lose(node)
            for rank in ranks:
                if rank in self._ranks.alive:
                    self._ranks.gone(rank, 9, "fault")
        else:
            self._ranks.kill(ranks, "fault")
            files = carrier.drop(self._arena.tiers(node)["local"])
            self._arena.lose(node)
        self._record(j.StorageDestroyed(attempt=self._attempt, tier="local", node=node, files=files, cause="node-loss"))
        self._let_survivors_live()

    def activate(self, on: bool = True) -> None:
        """See JobControl."""
        for node in self._ranks.nodes:
            node.activate(self._fault, on)
        if on:
            self._took_effect()

    def resume(self) -> None:
        """See JobControl."""
        self._release()

    def run_for(self, seconds: float) -> None:
        """See JobControl."""
        until = time.monotonic() + seconds
        while self._ranks.alive and (left := until - time.monotonic()) > 0:
            self._ranks.pump(min(left, TICK_SECONDS / 2))

    # Between two attempts

    def drop_storage(self, tier: str, node: int | None = None) -> int:
        """See JobControl."""
        carrier = self._arena.nodes[node or 0]
        files = carrier.drop(self._arena.tiers(node or 0)[tier])
        cause = "shared-storage-loss" if tier == "shared" else "local-storage-loss"
        self._record(j.StorageDestroyed(attempt=self._attempt, tier=tier, node=node, files=files, cause=cause))  # type: ignore[arg-type]
        return files

    def mutate(self, tier: str, node: int | None, mutation: Mutation) -> str | None:
        """See JobControl."""
        carrier = self._arena.nodes[node or 0]
        found = carrier.mutate(tier, self._arena.tiers(node or 0)[tier], mutation)
        if not found:
            self.nothing_there = f"{describe_tier(tier)} had nothing that the fault could change"
        for one in found:
            self._record(
                j.StorageMutated(
                    attempt=self._attempt,
                    tier=tier,
                    node=node,
                    path=one.path,
                    what=one.what,
                    damages=mutation.damages,
                )
            )
        return "; ".join(f"{describe_path(one.path)}: {one.what}" for one in found) or None
