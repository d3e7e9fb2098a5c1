"""A model of dcp jobs: what every rank does to storage, where ranks wait for one another, and a census of it."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from chaosckpt.model.census import Census, GoldenRun, Label, Point
from chaosckpt.model.operation import Address
from chaosckpt.model.scenario import FaultSettings, Scenario, TargetSettings, TopologySettings
from chaosckpt.model.topology import Topology

MAIN = Topology((1, 1))
SAVES = (2, 4, 6)


def scenario(
    ranks: tuple[tuple[int, ...], ...] = ((1, 1), (1, 1, 1), (1,)), faults: FaultSettings | None = None
) -> Scenario:
    return Scenario(
        name="dcp",
        target=TargetSettings(use="dcp"),
        topology=TopologySettings(ranks=ranks),
        faults=faults or FaultSettings(),
    )


@dataclass
class Program:
    """What one rank does: points, and numbers at which it waits for its peers."""

    rank: int
    items: list[Point | int] = field(default_factory=list)
    _nth: Counter = field(default_factory=Counter)
    _incarnation: Counter = field(default_factory=Counter)

    def do(self, label: Label, op: str, path: str, length: int | None = None) -> None:
        if op == "open_write":
            self._incarnation[path] += 1
        incarnation = self._incarnation[path]
        nth = self._nth[op, path, incarnation]
        self._nth[op, path, incarnation] += 1
        self.items.append(Point(Address(self.rank, "main", op, path, incarnation, nth), label, length))

    def wait(self, barrier: int) -> None:
        self.items.append(barrier)

    @property
    def points(self) -> list[Point]:
        return [item for item in self.items if isinstance(item, Point)]


def programs(
    topology: Topology, resumed_from: int | None, saves: tuple[int, ...] = SAVES, tier: str = "shared", writes: int = 28
) -> list[Program]:
    found = [Program(rank) for rank in range(topology.world_size)]
    for program in found:
        _recover(program, resumed_from, tier)
        program.wait(1)
        for step in saves:
            if resumed_from is None or step > resumed_from:
                _save(program, step, tier, writes)
    return found


def _recover(program: Program, resumed_from: int | None, tier: str) -> None:
    program.do(Label("discover"), "list", f"{tier}:.")
    program.wait(0)
    if resumed_from is None:
        return
    metadata = f"{tier}:step_{resumed_from}/.metadata"
    program.do(Label("discover"), "stat", metadata)
    for op in ("open_read", "read", "read", "close"):
        program.do(Label("load"), op, metadata, 400 if op == "read" else None)
    shard = f"{tier}:step_{resumed_from}/__{program.rank}_0.distcp"
    for op in ("open_read", "read", "read", "read", "close"):
        program.do(Label("load"), op, shard, 900 if op == "read" else None)


def _save(program: Program, step: int, tier: str, writes: int) -> None:
    persist, commit, folder = Label("persist", step), Label("commit", step), f"{tier}:step_{step}"
    program.wait(step * 100)
    program.do(persist, "mkdir", folder)
    program.wait(step * 100 + 1)
    shard = f"{folder}/__{program.rank}_0.distcp"
    program.do(persist, "open_write", shard)
    for i in range(writes if program.rank == 0 else max(2, writes * 12 // 28)):
        program.do(persist, "write", shard, 1 if i == 0 else 100 + i)
    program.do(persist, "fsync", shard)
    program.do(persist, "close", shard)
    program.wait(step * 100 + 2)
    if program.rank == 0:
        temporary = f"{folder}/.metadata.tmp"
        program.do(commit, "open_write", temporary)
        program.do(commit, "write", temporary, 700)
        program.do(commit, "fsync", temporary)
        program.do(commit, "close", temporary)
        program.do(commit, "rename", temporary)
    program.wait(step * 100 + 3)


class Walk:
    """The programs of one attempt, going on together in an order that depends on `seed`."""

    def __init__(self, found: list[Program], seed: int = 0) -> None:
        self.programs = found
        self.at = [0] * len(found)
        self.counts = [0] * len(found)
        self.dead: set[int] = set()
        """Ranks that do nothing more: killed, or held after an operation."""
        self.order: list[Point] = []
        self._random = random.Random(seed)

    def next_point(self, rank: int) -> Point | None:
        """The operation that a rank is about to do; None where it waits, is dead or is done."""
        program = self.programs[rank]
        while rank not in self.dead and self.at[rank] < len(program.items):
            item = program.items[self.at[rank]]
            if isinstance(item, Point):
                return item
            if not self._all_at(item):
                return None
            self.at[rank] += 1
        return None

    def _all_at(self, barrier: int) -> bool:
        """Every rank has come to this barrier, or has gone past it; a dead one, past it."""
        return all(
            program.items.index(barrier) + (rank in self.dead) <= self.at[rank]
            for rank, program in enumerate(self.programs)
        )

    def ready(self) -> list[int]:
        before: list[int] = []
        while before != self.at:
            before = list(self.at)
            found = [rank for rank in range(len(self.programs)) if self.next_point(rank) is not None]
        return found

    def perform(self, rank: int) -> None:
        point = self.next_point(rank)
        assert point is not None
        self.order.append(point)
        self.counts[rank] += 1
        self.at[rank] += 1

    def go_on(self, held: dict[int, int]) -> None:
        """Until nobody can: `held` names for a rank the number of operations after which it is held."""
        while ready := [rank for rank in self.ready() if self.counts[rank] != held.get(rank)]:
            self.perform(self._random.choice(ready))


def golden(
    topology: Topology, resumed_from: int | None, *, ladder: bool = True, speed: int = 0, **options
) -> GoldenRun:
    """`speed` decides in which order the ranks' operations happen to be recorded."""
    whole = Walk(programs(topology, resumed_from, **options), speed)
    whole.go_on({})
    points = tuple(whole.order)
    seen: Counter = Counter()
    reach = []
    for point in points:
        rank = point.address.rank
        walk = Walk(programs(topology, resumed_from, **options))
        walk.go_on({rank: seen[rank]})
        reach.append(tuple(walk.counts))
        seen[rank] += 1
    commits = {p.label.step: i for i, p in enumerate(points) if p.address.op == "rename" and p.label.step is not None}
    return GoldenRun(
        topology=topology,
        resumed_from=resumed_from,
        points=points,
        reach=tuple(reach) if ladder else (),
        commits=commits,
        saves=tuple(commits),
    )


def census(topologies: tuple[Topology, ...] = (MAIN, Topology((1, 1, 1)), Topology((1,))), **options) -> Census:
    """As it is measured for real: the ladder stands for the main run only."""
    plans = [(topology, step) for topology in topologies for step in (None, *SAVES)]
    runs = [golden(*plan, ladder=plan == (MAIN, None), **options) for plan in plans]
    return Census(runs=tuple(runs))
