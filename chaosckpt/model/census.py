"""The census: every operation of the golden runs, in order, with logical addresses, labels and reach."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from chaosckpt.model.fault import Trigger
from chaosckpt.model.operation import READING, Address
from chaosckpt.model.phrasing import describe_trigger
from chaosckpt.model.topology import MOST_RANKS, Topology

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


class Pauses(msgspec.Struct, frozen=True):
    """Seconds in which no operation of a run got anywhere: from the launch to the first, and the longest between two. 0: unknown."""

    first: float = 0.0
    between: float = 0.0


def longest_pauses(found: Iterable[Pauses]) -> Pauses:
    """The longest of each kind."""
    listed = list(found)
    return Pauses(max((one.first for one in listed), default=0.0), max((one.between for one in listed), default=0.0))


class GoldenRun(msgspec.Struct, frozen=True, kw_only=True):
    """One fault-free attempt: from the start (`resumed_from` None), or resumed from the checkpoint of a step.

    `points` stand in the order in which the gates saw them (the order within a rank is exact, that between ranks one of many).
    `reach[i]` tells, for the operation `points[i]` of some rank held *before* it happens, how many operations each rank has performed
    when all are at rest (the held rank's own count included); empty where it was not measured. `training[i]` is the training step
    that the rank of `points[i]` is about to begin then, because its saver works while it trains (0: none). `commits` maps a step
    to the index in `points` of the first operation after which recovery chooses that step.
    """

    topology: Topology
    resumed_from: int | None
    points: tuple[Point, ...]
    reach: tuple[tuple[int, ...], ...] = ()
    training: tuple[int, ...] = ()
    commits: dict[int, int] = {}
    saves: tuple[int, ...] = ()
    duration_seconds: float = 0.0
    """Measured; deadlines scale from it. No outcome does."""
    pauses: Pauses = Pauses()
    """Measured, too; how long a rank is watched that is never at rest."""
    by_time: bool = False
    """Whether rest, and so reach, could not be told exactly (chaosckpt/engine/runner/quiescence.py)."""

    def __post_init__(self) -> None:
        """Raises ValueError for what no golden run can be, such as a stored one that was edited."""
        world, length = self.topology.world_size, len(self.points)
        if world > MOST_RANKS:
            raise ValueError(f"a golden run has at most {MOST_RANKS} ranks, not {world}")
        if any(not 0 <= point.address.rank < world for point in self.points):
            raise ValueError(f"a golden run of {world} ranks has an operation of another rank")
        if any(not 0 <= place < length for place in self.commits.values()):
            raise ValueError(f"a golden run of {length} operations has a commit point beyond them")
        if any(len(counts) != world for counts in self.reach):
            raise ValueError(f"the reach of a golden run has a count for each of its {world} ranks")

    def ordered(self) -> GoldenRun:
        """The same run with its points in an order that doesn't depend on how fast each rank happened to be.

        The order within a rank stays. Between ranks it is save by save, in each the committing rank (else rank 0) last.
        """
        committers = {step: self.points[i].address.rank for step, i in self.commits.items()}
        group: dict[int, int] = {}
        keys: list[tuple[int, bool, int, int]] = []
        for i, point in enumerate(self.points):
            rank, step = point.address.rank, point.label.step
            group[rank] = now = max(group.get(rank, -1), -1 if step is None else step)
            keys.append((now, rank == committers.get(now, 0), -rank, i))
        order = [key[3] for key in sorted(keys)]
        place = {old: new for new, old in enumerate(order)}
        return msgspec.structs.replace(
            self,
            points=tuple(self.points[i] for i in order),
            reach=tuple(self.reach[i] for i in order) if len(self.reach) == len(order) else (),
            training=tuple(self.training[i] for i in order) if len(self.training) == len(order) else (),
            commits={step: place[i] for step, i in sorted(self.commits.items()) if i in place},
        )

    def of_rank(self, rank: int) -> tuple[Point, ...]:
        return tuple(point for point in self.points if point.address.rank == rank)


class RecoveryGap(msgspec.Struct, frozen=True):
    """After this operation of a fault-free run recovery would find less than the finished save of step `required`.

    `found` is the older step that it would choose; None where it would find nothing.
    """

    address: Address
    required: int
    found: int | None = None

    def __str__(self) -> str:
        left = "nothing had replaced it" if self.found is None else f"only step {self.found} was left"
        after = describe_trigger(Trigger(self.address, "after"))
        return f"{after}: step {self.required} was gone and {left}"


class Census(msgspec.Struct, frozen=True, kw_only=True):
    """All golden runs of a scenario, by topology and by the step resumed from. The first run is the main one."""

    runs: tuple[GoldenRun, ...]
    environment: dict[str, str] = {}
    """Versions and settings under which it was taken: `reproduce` says what differs."""
    left: tuple[str, ...] = ()
    """`tier:path`, nonces decoded, of every file that lies on storage at the end of some golden run."""
    prefixes: int = 0
    """On the storage after so many operations of the main run recovery was run, to see whether anything is left."""
    gaps: tuple[RecoveryGap, ...] = ()
    """Those of them after which too little was left."""
    nonces: tuple[str, ...] = ()
    """Expressions for the parts of a target's file names that differed from run to run, beside those that it declares."""

    @property
    def main(self) -> GoldenRun:
        return self.runs[0]

    @property
    def save_bytes(self) -> int:
        """The bytes that all ranks together write in the largest save."""
        written: dict[int, int] = {}
        for point in self.main.points:
            if point.address.op == "write" and point.label.step is not None:
                written[point.label.step] = written.get(point.label.step, 0) + (point.length or 0)
        return max(written.values(), default=0)

    @property
    def topologies(self) -> tuple[Topology, ...]:
        return tuple(dict.fromkeys(run.topology for run in self.runs))

    def run(self, topology: Topology, resumed_from: int | None) -> GoldenRun | None:
        return next((r for r in self.runs if r.topology == topology and r.resumed_from == resumed_from), None)

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits over every address and label, and over the commit points; times and versions stay out.

        So do the order between ranks and the operations that come or don't as ranks race: two censuses of one job are equal.
        """
        state = hashlib.blake2b(digest_size=8)
        for run in self.runs:
            state.update(f"{run.topology}/{run.resumed_from}\n".encode())
            skipped = unsteady(run.points)
            steady = (point for i, point in enumerate(run.points) if i not in skipped)
            lines = sorted(f"{p.address}|{p.label}|{p.length}" for p in steady)
            lines += [f"{step} is committed by {run.points[i].address}" for step, i in sorted(run.commits.items())]
            for line in lines:
                state.update(line.encode() + b"\n")
        return state.hexdigest()


def unsteady(points: Sequence[Point]) -> frozenset[int]:
    """Indices of the operations that come or don't, depending on which rank was faster.

    When several ranks make one directory, those that come late are told that it exists and look at it; so how often a rank
    looks at such a directory, once it has tried to make it, depends on who was first each time.
    """
    raced = raced_paths(points)
    tried: set[tuple[int, str]] = set()
    found: set[int] = set()
    for i, point in enumerate(points):
        address = point.address
        if address.op == "mkdir" and address.path in raced:
            tried.add((address.rank, address.path))
        elif address.op == "stat" and (address.rank, address.path) in tried:
            found.add(i)
    return frozenset(found)


def raced_paths(points: Sequence[Point]) -> frozenset[str]:
    """The directories that several ranks make."""
    makers: dict[str, set[int]] = {}
    for point in points:
        if point.address.op == "mkdir":
            makers.setdefault(point.address.path, set()).add(point.address.rank)
    return frozenset(path for path, ranks in makers.items() if len(ranks) > 1)
