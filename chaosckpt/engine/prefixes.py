"""Prefixes of a golden run: its storage as it was after each operation, on which the real recovery is run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from chaosckpt.engine.arena import Arena
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.reports import Labelled
from chaosckpt.model import journal as j
from chaosckpt.model.census import GoldenRun, Point
from chaosckpt.model.operation import Operation
from chaosckpt.model.topology import Topology

LARGEST_TRACE_BYTES = 256 << 20
"""Above this the trace isn't kept with its data."""


class Prober(Protocol):
    """What prefixes need of the golden runs."""

    arena: Arena
    saves: tuple[int, ...]

    def order(self, topology: Topology, resumed_from: int | None, **more: object) -> AttemptOrder: ...

    def attempt(
        self, topology: Topology, order: AttemptOrder, what: str, keep: list[list[Labelled]] | None = None
    ) -> tuple[list[j.AnyEvent], float]: ...

    def probe(self, topology: Topology, step: int) -> set[int | None]: ...


class Prefixes:
    """The golden run once more, recorded with its data. `rows` stand in the order of their effects, one of many."""

    def __init__(self, prober: Prober, topology: Topology) -> None:
        self._prober = prober
        self._topology = topology
        prober.arena.reset()
        kept: list[list[Labelled]] = []
        order = prober.order(topology, None, record="data")
        prober.attempt(topology, order, "the golden run with its data", kept)
        self.saves = prober.saves
        self.rows = sorted((row for rank in kept for row in rank), key=lambda row: row.order)
        self._trace = [_of_node(row.operation, topology) for row in self.rows]

    @classmethod
    def of(cls, prober: Prober, run: GoldenRun) -> Prefixes | None:
        """The prefixes of this golden run; None where its data is too much to be kept."""
        if sum(point.length or 0 for point in run.points if not point.reads) > LARGEST_TRACE_BYTES:
            return None
        return cls(prober, run.topology)

    def places_of(self, points: Sequence[Point]) -> dict[int, int]:
        """Where each point of the census stands in this trace: the order between ranks may differ from run to run."""
        where = {row.operation.address: place for place, row in enumerate(self.rows)}
        return {index: where[point.address] for index, point in enumerate(points) if point.address in where}

    def chosen(self, place: int, step: int) -> set[int | None]:
        """What recovery, run on the storage as it was after the operation at this place, chooses; empty where it refuses.

        `step` is the one that it is told was saved before.
        """
        from chaosckpt.crashstates.replay import replay

        self._prober.arena.reset()
        replay(self._trace[: place + 1], self._roots())
        return self._prober.probe(self._topology, step)

    def chooses(self, step: int, place: int) -> bool:
        """Whether all ranks choose this very step there."""
        return self.chosen(place, step) == {step}

    def _roots(self) -> dict[str, Path]:
        tiers = self._prober.arena.tiers
        return {
            f"{tier}@{node}": Path(path)
            for node in range(len(self._topology.ranks))
            for tier, path in tiers(node).items()
        }


def _of_node(operation: Operation, topology: Topology) -> Operation:
    """The operation with the tiers named after its rank's node, since each node has a `local` of its own."""
    node = topology.node_of(operation.address.rank)

    def placed(path: str) -> str:
        tier, colon, relative = path.partition(":")
        return f"{tier}@{node}:{relative}" if colon and not path.startswith("/") else path

    destination = None if operation.destination is None else placed(operation.destination)
    return msgspec.structs.replace(operation, raw=placed(operation.raw), destination=destination)
