"""The context of a fault: what a fault kind may know, and draw from, when it is asked for faults to inject there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from hypothesis import strategies as st

from chaosckpt.model.census import Census, Point
from chaosckpt.model.fault import Trigger
from chaosckpt.model.golden_index import GoldenIndex
from chaosckpt.model.operation import When, tier_of
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import AttemptPlan
from chaosckpt.model.topology import Topology

Accepts = Callable[[Point], bool]

BIAS: dict[str, int] = {"recovery": 6, "commit": 4, "resave": 4, "boundary": 3, "any": 5}
"""How often a trigger is looked for where faults have most to find, in parts. `resave` is the save that was cut short
before."""


def anywhere(_: Point) -> bool:
    """Accepts every operation."""
    return True


def torn_writes(point: Point) -> bool:
    """Accepts writes of which a part can be missing."""
    return point.address.op == "write" and (point.length or 0) >= 2


@dataclass(frozen=True, eq=False)
class FaultContext:
    """One attempt of a schedule that is being drawn.

    `golden` is the golden run that the attempt is expected to follow (without points where the census has none that
    would do); `exact` tells whether the census has precisely this run, so that its recovery can be addressed too.
    `interrupted` is the step whose save the attempt before was stopped in. `until` is the fault that ends this
    attempt, when one is drawn already: others must surely come before. With `recovery_only`, no fault may hit a
    save.
    """

    scenario: Scenario
    census: Census
    golden: GoldenIndex
    attempt: int = 0
    exact: bool = True
    interrupted: int | None = None
    history: tuple[AttemptPlan, ...] = ()
    until: tuple[Trigger, ...] = ()
    recovery_only: bool = False
    only: frozenset[int] | None = None
    """Where it is given, faults may hit no other operations than these."""

    @property
    def topology(self) -> Topology:
        return self.golden.topology

    @property
    def resumes_from(self) -> int | None:
        """The step that recovery is expected to choose; None for a start from nothing."""
        return self.golden.run.resumed_from

    def touches(self, tier: str) -> bool:
        """Whether any golden run does anything on this tier."""
        return any(point.address.path.startswith(f"{tier}:") for run in self.census.runs for point in run.points)

    @cached_property
    def candidates(self) -> tuple[int, ...]:
        """Operations at which a fault may be injected in this context, as indices of `golden.points`."""
        points = self.golden.points
        found = [i for i in range(len(points)) if i not in self.golden.unsteady]
        if not self.exact:
            # A neighbouring run stands in for the one that isn't known: only its later saves have the same addresses.
            done = self.resumes_from if self.resumes_from is not None else -1
            found = [i for i in found if (step := points[i].label.step) is not None and step > done]
        if self.recovery_only:
            found = [i for i in found if points[i].label.step is None]
        if self.until:
            stops = [i for trigger in self.until if (i := self.golden.index(trigger.address)) is not None]
            found = [i for i in found if all(self.golden.surely_before(i, stop) for stop in stops)]
        return tuple(found if self.only is None else [i for i in found if i in self.only])

    @cached_property
    def _allowed(self) -> frozenset[int]:
        return frozenset(self.candidates)

    def categories(self, accepts: Accepts = anywhere) -> dict[str, tuple[int, ...]]:
        """The candidates by the places of BIAS, those without any left out."""
        allowed = tuple(i for i in self.candidates if accepts(self.golden.points[i]))
        chosen = set(allowed)
        edges, commits = self._edges, self._around_commits
        found = {
            "recovery": tuple(i for i in allowed if self.golden.points[i].label.step is None) if self.attempt else (),
            "commit": tuple(i for i in commits if i in chosen),
            "resave": tuple(i for i in allowed if self._of_interrupted(i)),
            "boundary": tuple(i for i in edges if i in chosen),
            "any": allowed,
        }
        return {name: indices for name, indices in found.items() if indices}

    def points(self, accepts: Accepts = anywhere) -> st.SearchStrategy[int]:
        """Operations of the golden run, as indices; more often where it is interesting. Nothing where none is accepted."""
        found = self.categories(accepts)
        if not found:
            return st.nothing()
        names = [name for name, parts in BIAS.items() if name in found for _ in range(parts)]
        return st.sampled_from(names).flatmap(lambda name: st.sampled_from(found[name]))

    def triggers(self, accepts: Accepts = anywhere, *, torn: bool = True) -> st.SearchStrategy[Trigger]:
        """Before, after or (for writes, where `torn`) in the midst of an operation."""
        return self.points(accepts).flatmap(lambda i: self.trigger_at(i, torn=torn))

    def trigger_at(self, i: int, *, torn: bool = True) -> st.SearchStrategy[Trigger]:
        """Before, after or in the midst of this operation."""
        point = self.golden.points[i]
        whens: list[When] = ["before", "after"]
        if torn and torn_writes(point):
            whens.append("torn")
        return st.sampled_from(whens).flatmap(lambda when: _trigger(point, when))

    def can_inject(self, accepts: Accepts = anywhere) -> bool:
        return any(accepts(self.golden.points[i]) for i in self.candidates)

    def partners(self, i: int) -> list[int]:
        """The candidates of other ranks that are known to be held at the same time as operation `i`.

        Where saves overlap nothing is known: how many operations a rank has performed doesn't say which.
        """
        if self.scenario.workload.outstanding > 1:
            return []
        return [j for j in self.golden.races(i) if j in self._allowed]

    def files_read(self) -> list[tuple[str, int | None]]:
        """What the expected recovery reads: the census paths of files, and the node that holds each, None on shared storage."""
        if not self.attempt or not self.exact or self.resumes_from is None:
            return []
        recovery = [p.address for p in self.golden.points if p.label.step is None]
        directories = {at.path for at in recovery if at.op == "list"}
        opened = [at for at in recovery if at.op == "open_read" and at.path not in directories]
        places = {(at.path, None if tier_of(at.path) == "shared" else self.topology.node_of(at.rank)) for at in opened}
        return sorted(places, key=lambda place: (place[0], place[1] or 0))

    def narrowed(self, until: Sequence[Trigger]) -> FaultContext:
        """The same context for faults that must come before these."""
        return replace(self, until=tuple(until))

    def restricted(self, only: Iterable[int]) -> FaultContext:
        """The same context for faults at these operations."""
        return replace(self, only=frozenset(only))

    def _of_interrupted(self, i: int) -> bool:
        return self.interrupted is not None and self.golden.points[i].label.step == self.interrupted

    @cached_property
    def _edges(self) -> tuple[int, ...]:
        """The first and the last operation of each stage on each rank, and the first of each file."""
        first: dict[object, int] = {}
        last: dict[object, int] = {}
        for i, point in enumerate(self.golden.points):
            stage = (point.address.rank, point.label)
            first.setdefault(stage, i)
            last[stage] = i
            first.setdefault((stage, point.address.path), i)
        return tuple(sorted({*first.values(), *last.values()}))

    @cached_property
    def _around_commits(self) -> tuple[int, ...]:
        """Each committing operation, the one before it on its rank, and the first after it on every rank."""
        found: set[int] = set()
        for commit in self.golden.commits.values():
            own = self.golden.of_rank(self.golden.points[commit].address.rank)
            place = self.golden.place(commit)
            found.update(own[max(0, place - 1) : place + 2])
            counts = self.golden.reach(commit)
            for rank, count in enumerate(counts):
                found.update(self.golden.of_rank(rank)[count : count + 1])
        return tuple(sorted(found))


def _trigger(point: Point, when: When) -> st.SearchStrategy[Trigger]:
    if when != "torn":
        return st.just(Trigger(point.address, when))
    length = point.length or 0
    torn = st.one_of(st.sampled_from(torn_lengths(length)), st.integers(1, length - 1))
    return torn.map(lambda count: Trigger(point.address, "torn", count))


def torn_lengths(length: int) -> list[int]:
    """How many bytes of a write are tried first: one, half, and all but one. `length` is at least 2."""
    return sorted({1, length // 2, length - 1})
