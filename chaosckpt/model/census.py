"""The census: every operation of the golden runs, in order, with logical addresses, labels and reach."""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

from chaosckpt.model.operation import READING, Address
from chaosckpt.model.topology import Topology

Stage = Literal["snapshot", "persist", "commit", "retire", "discover", "load"]


class Label(msgspec.Struct, frozen=True, order=True):
    """What an operation belongs to, for people and for coverage: the save of a step, or a recovery (step None)."""

    stage: Stage
    step: int | None = None

    def __str__(self) -> str:
        return f"{self.stage} of the recovery" if self.step is None else f"{self.stage} of save {self.step}"


class Point(msgspec.Struct, frozen=True):
    """One operation of a golden run. `length` is the number of bytes that it moved, where it moves any."""

    address: Address
    label: Label
    length: int | None = None

    @property
    def reads(self) -> bool:
        return self.address.op in READING


class GoldenRun(msgspec.Struct, frozen=True, kw_only=True):
    """One fault-free attempt: from the start (`resumed_from` None), or resumed from the checkpoint of a step.

    `points` stand in the order in which the gates saw them (the order within a rank is exact, that between ranks one of many).
    `reach[i]` tells, for the operation `points[i]` of some rank held *before* it happens, how many operations each rank has performed
    when all are at rest (the held rank's own count included); empty where no ladder was run. `commits` maps a step
    to the index in `points` of the first operation after which recovery chooses that step.
    """

    topology: Topology
    resumed_from: int | None
    points: tuple[Point, ...]
    reach: tuple[tuple[int, ...], ...] = ()
    commits: dict[int, int] = {}
    saves: tuple[int, ...] = ()
    duration_seconds: float = 0.0
    """Measured; deadlines scale from it. No outcome does."""

    def of_rank(self, rank: int) -> tuple[Point, ...]:
        return tuple(point for point in self.points if point.address.rank == rank)


class Census(msgspec.Struct, frozen=True, kw_only=True):
    """All golden runs of a scenario, by topology and by the step resumed from. The first run is the main one."""

    runs: tuple[GoldenRun, ...]
    environment: dict[str, str] = {}
    """Versions and settings under which it was taken: `reproduce` says what differs."""

    @property
    def main(self) -> GoldenRun:
        return self.runs[0]

    @property
    def topologies(self) -> tuple[Topology, ...]:
        return tuple(dict.fromkeys(run.topology for run in self.runs))

    def run(self, topology: Topology, resumed_from: int | None) -> GoldenRun | None:
        return next((r for r in self.runs if r.topology == topology and r.resumed_from == resumed_from), None)

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits over every address and label; times and versions stay out."""
        state = hashlib.blake2b(digest_size=8)
        for run in self.runs:
            state.update(f"{run.topology}/{run.resumed_from}\n".encode())
            for line in sorted(f"{p.address}|{p.label}|{p.length}" for p in run.points):
                state.update(line.encode() + b"\n")
        return state.hexdigest()
