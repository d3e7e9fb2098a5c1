"""The earliest operation at which a fault still shows its violation: the first save, the lowest rank, the first of
its operations.

A save has dozens of operations, and each question is a real trial: so it is asked at the edges of the files first,
then by bisection between the last edge that doesn't show the violation and the first one that does.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

from chaosckpt.campaign.shrink.retarget import analogs, places, replaced, retargeted
from chaosckpt.faults.context import torn_writes
from chaosckpt.model.census import Point
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.golden_index import GoldenIndex
from chaosckpt.model.schedule import Schedule
from chaosckpt.strategies.prediction import CensusIndex

Step = Generator[Sequence[Schedule], Schedule | None, Schedule]


def moved_earlier(census_index: CensusIndex, best: Schedule, attempt: int, index: int) -> Step:
    """The schedule with this fault's one trigger as early as it can be; unchanged where it has none, or several."""
    search = _Earliest(census_index, best, attempt, index)
    for step in (search.plain_moment, search.first_save, search.lowest_rank, search.first_operation):
        if search.here() is None:
            break
        yield from step()
    return search.best


class _Earliest:
    def __init__(self, census_index: CensusIndex, best: Schedule, attempt: int, index: int) -> None:
        self.census_index = census_index
        self.best = best
        self.attempt = attempt
        self.index = index

    @property
    def fault(self) -> Fault:
        return self.best.attempts[self.attempt].faults[self.index]

    @property
    def golden(self) -> GoldenIndex:
        return self.census_index.attempts(self.best)[self.attempt].golden

    def here(self) -> int | None:
        """The operation that the fault is injected at, where it is a single one that the census expects."""
        triggers = self.fault.triggers()
        return self.golden.index(triggers[0].address) if len(triggers) == 1 else None

    def _at(self, i: int) -> int:
        here = self.here()
        return i if here is None else here

    def plain_moment(self) -> Step:
        """Before the operation (or before the next one, which finds the same storage) instead of after it or in its
        midst."""
        trigger = self.fault.triggers()[0]
        i = self.here()
        if i is None or not self.fault.holds():
            return self.best
        own = self.golden.of_rank(trigger.address.rank)
        place = self.golden.place(i)
        moments = [self._trigger(own[place], "before")]
        if trigger.when == "after" and place + 1 < len(own):
            moments.append(self._trigger(own[place + 1], "before"))
        if trigger.when == "torn":
            moments.append(Trigger(trigger.address, "torn", 1))
        if trigger.when != "before":
            yield from self._first_of(moments)
        return self.best

    def first_save(self) -> Step:
        """The same place in the earliest save."""
        i = self.here()
        assert i is not None
        point = self.golden.points[i]
        if point.label.step is not None:
            earlier = [
                j
                for j in analogs(self.golden, places(self.golden)[i])
                if (step := self.golden.points[j].label.step) is not None and step < point.label.step
            ]
            yield from self._first_of([self._alike(j) for j in earlier])
        return self.best

    def lowest_rank(self) -> Step:
        """Another rank of a lower number, at the edges of its files in the same save."""
        i = self.here()
        assert i is not None
        point = self.golden.points[i]
        for rank in range(point.address.rank):
            edges = self._edges(self._span(point, rank))
            if (yield from self._first_of([self._alike(j) for j in edges])):
                break
        return self.best

    def first_operation(self) -> Step:
        """The first of its rank's operations in the same save: by edges, then by bisection."""
        i = self.here()
        assert i is not None
        span = self._span(self.golden.points[i], self.golden.points[i].address.rank)
        edges = [j for j in self._edges(span) if j < i]
        yield from self._first_of([self._alike(j) for j in edges])
        low = max((j for j in edges if j < self._at(i)), default=-1)
        while True:
            between = [j for j in span if low < j < self._at(i) and self._fits(j)]
            if not between:
                return self.best
            middle = between[len(between) // 2]
            if not (yield from self._first_of([self._alike(middle)])):
                low = middle

    def _span(self, point: Point, rank: int) -> list[int]:
        """Operations of a rank in the same save, or in the same recovery, that a fault can be aimed at."""
        return [
            i
            for i in self.golden.of_rank(rank)
            if self.golden.points[i].label.step == point.label.step and i not in self.golden.unsteady
        ]

    def _edges(self, span: Iterable[int]) -> list[int]:
        """The first operation of each name on each file, and the last on it, among those that the fault can strike."""
        first: dict[tuple[str, str], int] = {}
        last: dict[str, int] = {}
        for i in span:
            if self._fits(i):
                address = self.golden.points[i].address
                first.setdefault((address.path, address.op), i)
                last[address.path] = i
        return sorted({*first.values(), *last.values()})

    def _fits(self, i: int) -> bool:
        point = self.golden.points[i]
        if self.fault.triggers()[0].when == "torn" and not torn_writes(point):
            return False
        return self.fault.accepts(point.address.op)

    def _trigger(self, i: int, when: str) -> Trigger:
        point = self.golden.points[i]
        if when != "torn":
            return Trigger(point.address, "after" if when == "after" else "before")
        most = (point.length or 2) - 1
        return Trigger(point.address, "torn", max(1, min(self.fault.triggers()[0].torn_bytes, most)))

    def _alike(self, i: int) -> Trigger:
        """A trigger at this operation, at the same moment of it as now."""
        return self._trigger(i, self.fault.triggers()[0].when)

    def _first_of(self, triggers: Sequence[Trigger]) -> Generator[Sequence[Schedule], Schedule | None, bool]:
        """Take the first of these triggers with which the schedule still fails. Returns whether there was one."""
        candidates: dict[str, Schedule] = {}
        for trigger in triggers:
            moved = replaced(self.best, self.attempt, self.index, self.fault.moved([trigger]))
            aimed = retargeted(self.census_index, self.best, moved)
            if aimed is not None and aimed != self.best:
                candidates.setdefault(aimed.digest, aimed)
        if not candidates:
            return False
        found = yield list(candidates.values())
        if found is None:
            return False
        self.best = found
        return True
