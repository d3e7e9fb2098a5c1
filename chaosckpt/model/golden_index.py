"""A golden run, indexed: where an operation stands, how far peers get while it is held, and what recovery would
choose then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from chaosckpt.model.census import GoldenRun, Point, unsteady
from chaosckpt.model.fault import Trigger
from chaosckpt.model.operation import Address
from chaosckpt.model.topology import Topology

CHANGING = frozenset({"open_write", "write", "ftruncate", "truncate", "rename", "link", "symlink", "unlink"})
"""Operations that change what recovery can find."""


class GoldenIndex:
    """Indexes over one golden run. Operations are named by their index in `points`, which stand in an order of their own:
    nothing here depends on how fast the ranks happened to be when the run was recorded.

    `main`, the run of the same topology from the start, lends its commit points and its reach to a run that has none of
    its own: the same operations commit the same steps, and wait for the same peers.
    """

    def __init__(self, run: GoldenRun, main: GoldenRun | None = None) -> None:
        self.run = run.ordered()
        self._lender = None if main is None else GoldenIndex(main)
        self.points: tuple[Point, ...] = self.run.points
        self._index: dict[Address, int] = {}
        self._place: list[int] = []
        self._of_rank: list[list[int]] = [[] for _ in range(run.topology.world_size)]
        for i, point in enumerate(self.points):
            self._index.setdefault(point.address, i)
            own = self._of_rank[point.address.rank]
            self._place.append(len(own))
            own.append(i)
        self._recorded = {point.address: i for i, point in enumerate(run.points)}
        self._reaches: dict[int, tuple[int, ...] | None] = {}
        self._races: dict[int, tuple[int, ...]] = {}

    @property
    def topology(self) -> Topology:
        return self.run.topology

    def index(self, address: Address) -> int | None:
        return self._index.get(address)

    def place(self, i: int) -> int:
        """How many operations its rank performs before operation `i`."""
        return self._place[i]

    def of_rank(self, rank: int) -> Sequence[int]:
        """The operations of a rank, in order; empty for a rank that the topology hasn't."""
        return self._of_rank[rank] if 0 <= rank < len(self._of_rank) else ()

    @property
    def ends(self) -> tuple[int, ...]:
        """Operations that each rank performs in the whole run."""
        return tuple(len(own) for own in self._of_rank)

    def reach(self, i: int) -> tuple[int, ...]:
        """Operations that each rank has performed once operation `i` is held before it happens and all are at rest.

        Peers learn of a rank's progress by what it sends, not by its operations: held after `i` or in the midst of it,
        they get equally far. Where that isn't known, this is the count in the order of `points`, one of many.
        """
        known = self.known_reach(i)
        if known is not None:
            return known
        counts = [0] * len(self._of_rank)
        for point in self.points[:i]:
            counts[point.address.rank] += 1
        return tuple(counts)

    def known_reach(self, i: int) -> tuple[int, ...] | None:
        """As `reach`, where it was measured: in this run, or in the main run for the same operations of a save."""
        if len(self.run.reach) == len(self.points):
            return self.run.reach[i]
        if i not in self._reaches:
            self._reaches[i] = self._borrowed_reach(i)
        return self._reaches[i]

    def training(self, i: int) -> int:
        """The training step before which its rank stands once operation `i` is held and all are at rest.

        0 where that isn't known, or where the rank's training thread has begun none since the run started.
        """
        if len(self.run.training) == len(self.points):
            return self.run.training[i]
        there = self._in_lender(i)
        return 0 if there is None or self._lender is None else self._lender.training(there)

    def _in_lender(self, i: int) -> int | None:
        """The same operation of the same save in the main run.

        Its address there may differ: it may be the fifth listing of a directory here, and the seventh there.
        """
        return None if self._lender is None else self._lender._of_save.get(self._names[i])

    def _lent(self, there: int) -> int | None:
        """The operation here of which an operation of a save of the main run is the same."""
        assert self._lender is not None
        return self._of_save.get(self._lender._names[there])

    @cached_property
    def _names(self) -> list[tuple[object, ...]]:
        """For each operation what it is called within its save, whichever run that save is part of."""
        seen: Counter[tuple[object, ...]] = Counter()
        found: list[tuple[object, ...]] = []
        for point in self.points:
            address = point.address
            name = (point.label.step, address.rank, address.role, address.op, address.path)
            found.append((*name, seen[name]))
            seen[name] += 1
        return found

    @cached_property
    def _of_save(self) -> dict[tuple[object, ...], int]:
        """The operations of saves by these names."""
        return {name: i for i, name in enumerate(self._names) if self.points[i].label.step is not None}

    def _borrowed_reach(self, i: int) -> tuple[int, ...] | None:
        there = self._in_lender(i)
        measured = None if there is None or self._lender is None else self._lender.known_reach(there)
        if measured is None or self._lender is None:
            return None
        counts: list[int] = []
        for rank, count in enumerate(measured):
            own = self._lender.of_rank(rank)
            last = self._lent(own[count - 1]) if count else None
            if last is None:
                return None
            counts.append(self._place[last] + 1)
        counts[self.points[i].address.rank] = self._place[i]
        return tuple(counts)

    def consistent(self, indices: Sequence[int]) -> bool:
        """Whether all these operations, of different ranks, can be held at the same time.

        Each must be attempted while any other is held: a rank whose count equals its reach blocks in a collective
        before it.
        """
        ranks = {self.points[i].address.rank for i in indices}
        if len(ranks) != len(indices):
            return False
        if len(indices) == 1:
            return True
        reaches = [self.known_reach(i) for i in indices]
        return all(
            reach is not None and reach[self.points[j].address.rank] > self._place[j]
            for i, reach in zip(indices, reaches, strict=True)
            for j in indices
            if i != j
        )

    def races(self, i: int) -> tuple[int, ...]:
        """Operations of other ranks of which neither must come before operation `i` nor after it."""
        if i not in self._races:
            others = (j for j in range(len(self.points)) if self.points[j].address.rank != self.points[i].address.rank)
            self._races[i] = tuple(j for j in others if self.consistent((i, j)))
        return self._races[i]

    def at_rest(self, triggers: Sequence[Trigger]) -> tuple[int, ...] | None:
        """Operations performed by each rank when all triggers are held and the others are at their reach.

        None where a trigger isn't in this run, or where not all of them can arrive.
        """
        indices = [self._index.get(trigger.address) for trigger in triggers]
        known = [i for i in indices if i is not None]
        if not known or len(known) != len(indices) or not self.consistent(known):
            return None
        counts = [min(column) for column in zip(*(self.reach(i) for i in known), strict=True)]
        for i, trigger in zip(known, triggers, strict=True):
            counts[trigger.address.rank] = self._place[i] + (trigger.when == "after")
        return tuple(counts)

    def surely_before(self, i: int, j: int) -> bool:
        """Whether operation `j` can't be attempted before `i` is over, whatever the speed of the ranks."""
        rank, other = self.points[i].address.rank, self.points[j].address.rank
        if rank == other:
            return self._place[i] < self._place[j]
        reach = self.known_reach(i)
        return reach is not None and reach[other] <= self._place[j]

    @cached_property
    def unsteady(self) -> frozenset[int]:
        """Operations that come or don't, as the ranks race: no fault is aimed at them, because it would often miss."""
        return unsteady(self.points)

    def order(self, i: int, j: int) -> int:
        """-1 where `i` is surely before `j`, 1 where `j` is surely before `i`, 0 where their order is open."""
        if self.surely_before(i, j):
            return -1
        return 1 if self.surely_before(j, i) else 0

    @cached_property
    def commits(self) -> dict[int, int]:
        """The committing operation of every saved step: as measured, else as in the main run, else the last of its
        save."""
        found = dict(self.run.commits)
        if not found and self._lender is not None:
            for step, i in self._lender.run.commits.items():
                here = self._lent(i)
                if here is not None:
                    found[step] = here
        if not found:
            found = {step: end for step in self.steps if (end := self._end_of_save(step)) is not None}
        return {step: found[step] for step in sorted(found)}

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Steps that are saved in this run, ascending."""
        labelled = {point.label.step for point in self.points if point.label.step is not None}
        return tuple(sorted(labelled | set(self.run.saves)))

    def _end_of_save(self, step: int) -> int | None:
        """The operation of a save after which none of it is missing, on any rank, by their reach."""
        own = [i for i, point in enumerate(self.points) if point.label.step == step and point.label.stage != "retire"]
        needed: dict[int, int] = {}
        for i in own:
            needed[self.points[i].address.rank] = self._place[i] + 1
        for i in own:
            counts = list(self.reach(i))
            counts[self.points[i].address.rank] = self._place[i] + 1
            if all(counts[rank] >= count for rank, count in needed.items()):
                return i
        return own[-1] if own else None

    def resumes_from(self, counts: Sequence[int]) -> int | None:
        """The newest step whose save is complete within these counts; else what this run itself resumed from."""
        for step in reversed(self.commits):
            if all(counts[rank] >= count for rank, count in self._needs[step].items()):
                return step
        return self.run.resumed_from

    @cached_property
    def _needs(self) -> dict[int, dict[int, int]]:
        """For each saved step the operations that each rank has to perform until it is committed.

        Beside the committing operation these are the others of the save, of any rank, that had changed storage by then:
        where ranks finish independently, the recorded commit is only that of whoever came last.
        """
        found: dict[int, dict[int, int]] = {}
        for step, commit in self.commits.items():
            until = self._recorded[self.points[commit].address]
            needs = {self.points[commit].address.rank: self._place[commit] + 1}
            for i, point in enumerate(self.points):
                if point.label.step == step and point.address.op in CHANGING and self._recorded[point.address] <= until:
                    needs[point.address.rank] = max(needs.get(point.address.rank, 0), self._place[i] + 1)
            found[step] = needs
        return found
