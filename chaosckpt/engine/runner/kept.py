"""Copies of storage as it was when a checkpoint was acknowledged after a fault: retention can't hide it from an audit."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import msgspec

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.model import journal as j
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.topology import Topology


class Kept(msgspec.Struct, frozen=True):
    """Copies of every tier, as a kill at this moment would have left them."""

    moment: j.Moment

    @property
    def name(self) -> str:
        """What the copies' names end with."""
        return f"kept-{self.moment.step}-{self.moment.level}"

    def copies(self, arena: Arena, carrier: object) -> dict[str, str]:
        """The directory of each tier that this node process can reach, with that of its copy."""
        found = {}
        for number, node in enumerate(arena.nodes):
            if node is carrier:
                names = (*arena.node_tiers, *arena.shared_tiers) if number == 0 else arena.node_tiers
                found.update({arena.tiers(number)[tier]: f"{arena.tiers(number)[tier]}.{self.name}" for tier in names})
        return found


class Keeper:
    """Sees the events of one attempt as they are recorded, and copies what its ranks are told is safe after a fault that may spoil it.

    A rank that reports an acknowledgement waits until it is recorded (Node.proceed), so that the copy is made before that rank can
    go on to a save that takes this one's place. A node performs the operations of its ranks itself, one after the other, and
    none while it copies; of several nodes every gate is shut meanwhile.

    `steps` are kept without any fault, too.
    """

    def __init__(
        self, arena: Arena, topology: Topology, guarantees: Collection[Guarantee], steps: Collection[int] = ()
    ) -> None:
        self.kept: list[Kept] = []
        self._arena = arena
        self._world = topology.world_size
        self._outlives_local = "local-storage-loss" in guarantees
        self._uses_local = False
        self._spoilt = False
        self._steps = frozenset(steps)
        self._over = False
        self._told: dict[tuple[int, str], set[int]] = {}

    def see(self, event: j.AnyEvent) -> None:
        """Take note of an event that has just been recorded."""
        if j.may_spoil(event):
            self._spoilt = True
        elif isinstance(event, j.StorageDestroyed):
            self._over = True  # with a node that may be gone
        elif isinstance(event, j.SaveStarted):
            for (step, _), told in self._told.items():
                if step == event.step:
                    told.discard(event.rank)  # it is tried again
        elif isinstance(event, j.Acknowledged):
            told = self._told.setdefault((event.step, event.level), set())
            told.add(event.rank)
            self._uses_local = self._uses_local or event.level == "local"
            if (self._spoilt or event.step in self._steps) and not self._over and len(told) == self._world:
                alone = event.level == "shared" and self._uses_local and self._outlives_local
                self._keep(Kept(j.Moment(event.step, event.level, alone)))

    def _keep(self, kept: Kept) -> None:
        nodes = self._arena.distinct()
        if len(nodes) > 1:
            for node in nodes:
                node.freeze()
        try:
            if kept in self.kept:
                self.kept.remove(kept)  # the save was tried again, and takes the place of its first try
            self.kept.append(kept)
            if not all(node.keep(kept.copies(self._arena, node)) for node in nodes):
                self._discard(self.kept.pop())  # what some nodes have kept is no storage that ever was
        finally:
            if len(nodes) > 1:
                for node in nodes:
                    node.thaw()

    @contextmanager
    def standing(self, kept: Kept) -> Iterator[None]:
        """Within this block what was kept is what lies on storage. No rank may run when it begins or ends."""
        self._exchange(kept)
        try:
            if kept.moment.alone:
                for number, node in enumerate(self._arena.nodes):
                    for tier in self._arena.node_tiers:
                        node.drop(self._arena.tiers(number)[tier])
            yield
        finally:
            self._exchange(kept)

    def _exchange(self, kept: Kept) -> None:
        for node in self._arena.distinct():
            node.exchange(kept.copies(self._arena, node))

    def discard(self) -> None:
        """Remove all copies."""
        while self.kept:
            self._discard(self.kept.pop())

    def _discard(self, kept: Kept) -> None:
        for node in self._arena.distinct():
            node.discard(list(kept.copies(self._arena, node).values()))
