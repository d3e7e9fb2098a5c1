"""Whole schedules as a Hypothesis strategy: swarm style over fault kinds, biased to where faults have most to find.

The rules that keep a drawn fault from missing: at most one fault in an attempt ends anything for sure, and nothing comes
after it; what comes before it does so surely, by the reach of the golden run; topology and storage change between
two attempts only. After an error that the target may survive comes at most a kill in a later save, which an attempt that has
ended by then may do without; what follows in another attempt is left to chance rarely.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from hypothesis import reject
from hypothesis import strategies as st

from chaosckpt.errors import UsageError
from chaosckpt.faults.context import FaultContext
from chaosckpt.faults.save_retry import SaveRetry
from chaosckpt.model.census import Census
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.operation import Address
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.strategies.prediction import CensusIndex, PredictedRun, ending_fault

T = TypeVar("T")
Kinds = Mapping[str, type[Fault]]

PARTS = 1000
"""Weights are drawn in whole parts of this, so that no float decides."""


class Draw(Protocol):
    """Hypothesis's `draw`."""

    def __call__(self, strategy: st.SearchStrategy[T], /) -> T: ...


@dataclass(frozen=True, eq=False)
class DrawSpace:
    """What schedules are drawn from: a scenario, the index of its census, and the fault kinds with their weights."""

    scenario: Scenario
    census_index: CensusIndex
    kinds: Kinds

    @classmethod
    def of(cls, scenario: Scenario, census: Census, kinds: Kinds) -> DrawSpace:
        """The kinds that the scenario draws, in order of their names. Raises UsageError where it names one that isn't
        there."""
        wanted = scenario.faults.kinds
        for name in wanted:
            if name not in kinds:
                raise UsageError(
                    f"faults.kinds names {name!r}, which no plugin offers; there are: {', '.join(sorted(kinds))}"
                )
        weights = wanted or {name: kind.weight for name, kind in kinds.items()}
        enabled = {name: kinds[name] for name in sorted(kinds) if weights.get(name, 0) > 0}
        return cls(scenario, CensusIndex(census), enabled)

    def parts(self, name: str) -> int:
        weight = self.scenario.faults.kinds.get(name, self.kinds[name].weight)
        return max(1, round(weight * PARTS))


def schedules(scenario: Scenario, census: Census, kinds: Kinds) -> st.SearchStrategy[Schedule]:
    """Schedules of one to `max_attempts` attempts with faults; each follows what the attempts before it are expected
    to leave."""
    return from_space(DrawSpace.of(scenario, census, kinds))


@st.composite
def from_space(
    draw: Draw, space: DrawSpace, focus: str | None = None, openings: Sequence[AttemptPlan] = ()
) -> Schedule:
    """Schedules drawn from what is laid out already, with at least one fault, and one of the kind `focus` where it is given.

    Half of them begin with one of `openings`, if there are any: attempts after which it is known what is recovered.
    """
    subset = _swarm(draw, space)
    dense = draw(st.booleans())
    limit = space.scenario.faults.max_attempts
    count = draw(st.sampled_from([n for n in (1, 1, 1, 2, 2, 2, 2, 3, 3, *range(4, limit + 1)) if n <= limit]))
    history: list[AttemptPlan] = []
    predicted = space.census_index.start()
    opened: bool = bool(openings) and draw(st.booleans())
    if opened:
        history.append(draw(st.sampled_from(openings)))
        predicted = space.census_index.following(predicted, history[0])
        count = max(2, count)
    while len(history) < max(count, limit if focus is not None else 0):
        last = len(history) >= count - 1
        attempt = _Attempt(draw, space, subset, tuple(history), focus=focus, last=last, dense=dense)
        plan, predicted = attempt.plan(predicted)
        if not plan.faults:
            break
        history.append(plan)
        if any(fault.kind == focus for fault in plan.faults):
            focus = None
        if (last and focus is None) or not _can_go_on(draw, space, plan, predicted):
            break
        predicted = space.census_index.following(predicted, plan)
    if focus is not None or not history:
        reject()
    return Schedule(tuple(history))


def _swarm(draw: Draw, space: DrawSpace) -> tuple[str, ...]:
    """The kinds that this schedule may have: all of them in a quarter of the schedules, else each by chance.

    A rare kind is enabled rarely, so that it doesn't rule the schedules in which few others are.
    """
    names = tuple(space.kinds)
    if draw(st.integers(0, 3)) == 0:
        return names
    chosen = tuple(name for name in names if draw(st.integers(1, 2 * PARTS)) <= min(PARTS, space.parts(name)))
    if any(not space.kinds[name].between for name in chosen):
        return chosen
    injecting = [name for name in names if not space.kinds[name].between]
    return (*chosen, _weighted(draw, space, injecting)) if injecting else chosen


def _weighted(draw: Draw, space: DrawSpace, names: Sequence[str]) -> str:
    """One of these kinds by weight. Smaller choices mean earlier names."""
    at = draw(st.integers(0, sum(space.parts(name) for name in names) - 1))
    for name in names:
        at -= space.parts(name)
        if at < 0:
            return name
    raise AssertionError("the parts of all names add up to the range drawn from")


@dataclass(frozen=True)
class _Attempt:
    """One attempt of a schedule that is being drawn. `focus` is the kind of which the schedule still lacks a fault."""

    draw: Draw
    space: DrawSpace
    subset: Sequence[str]
    history: tuple[AttemptPlan, ...]
    focus: str | None
    last: bool
    dense: bool

    def plan(self, predicted: PredictedRun) -> tuple[AttemptPlan, PredictedRun]:
        """The faults of the attempt, in the order in which they are injected, and what it is then expected to do."""
        room = self.space.scenario.faults.max_per_attempt
        opening = self.between(_context(self.space, predicted, self.history), room)
        predicted = self.space.census_index.turned(predicted, opening)
        if any(fault.blurs for fault in opening):
            return AttemptPlan(opening), predicted
        context = _context(self.space, predicted, self.history)
        free = room - len(opening)
        ending = self.ending(context, free) if free > 0 else ()
        passing: tuple[Fault, ...] = ()
        free -= len(ending)
        wanted = self.wants(lambda kind: not kind.between and kind.ends == "nothing")
        if free > 0 and (not ending or self.dense or wanted or self.draw(st.integers(0, 3)) == 0):
            before = context if not ending else context.narrowed(ending[0].triggers())
            if not ending or ending[0].triggers():
                passing = self.passing(before, free if self.dense else 1, first=wanted)
        return AttemptPlan((*self.retrying(opening, ending), *passing, *ending)), predicted

    def retrying(self, opening: tuple[Fault, ...], ending: tuple[Fault, ...]) -> tuple[Fault, ...]:
        """The opening, and in half of the attempts with an error in a save, where the workload doesn't retry by itself, a retry."""
        able = SaveRetry().kind in self.space.kinds and self.space.scenario.workload.retries == 0
        if not able or not any(fault.ends == "perhaps" for fault in ending) or self.draw(st.booleans()):
            return opening
        return (*opening, SaveRetry())

    def wants(self, fits: Callable[[type[Fault]], bool]) -> Sequence[str]:
        """The kind in focus, where it is such a one and is to come here: in the last attempt, or by chance before it."""
        if self.focus is None or not fits(self.space.kinds[self.focus]):
            return ()
        return (self.focus,) if self.last or self.draw(st.booleans()) else ()

    def between(self, context: FaultContext, room: int) -> tuple[Fault, ...]:
        """At most one fault that is injected before the ranks start: in two of three attempts that can have one, in one of six first
        ones."""
        wanted = self.wants(lambda kind: kind.between) if room else ()
        names = [name for name in self.subset if self.space.kinds[name].between]
        often = self.draw(st.integers(0, 5)) < (4 if context.attempt else 1)
        chosen = wanted or (names if room and often else ())
        fault = _one_of(self.draw, self.space, chosen, context) if chosen else None
        return () if fault is None else (fault,)

    def ending(self, context: FaultContext, room: int) -> tuple[Fault, ...]:
        """The fault by which the attempt ends, or an error by which it may, with a fault that ends it for sure behind that.

        Every attempt but the last one has one, where it can. As long as the kind in focus is to come later, it is often one after which
        the next attempt can be foreseen.
        """
        kinds = self.space.kinds
        names = [name for name in self.subset if kinds[name].ends != "nothing" and not kinds[name].between]
        wanted = self.wants(lambda kind: not kind.between and kind.ends != "nothing")
        if wanted and (fault := _one_of(self.draw, self.space, wanted, context)) is not None:
            return (fault, *self.behind(context, fault, room))
        if self.focus is not None and not self.last:
            sure = [name for name in kinds if kinds[name].ends == "job" and not kinds[name].blurs]
            often: bool = self.draw(st.booleans())
            names = sure if sure and often else names
        if self.focus is None and self.last and self.draw(st.integers(0, 7)) == 7:
            return ()
        if context.history and self.draw(st.integers(0, 5)) == 5:
            again = _repeated(self.draw, context, names)
            if again is not None:
                return (again,)
        fault = _one_of(self.draw, self.space, names, context)
        return () if fault is None else (fault, *self.behind(context, fault, room))

    def behind(self, context: FaultContext, error: Fault, room: int) -> tuple[Fault, ...]:
        """What ends an attempt for sure after an error that it may survive, in half of them: it goes on, and is killed later."""
        if error.ends != "perhaps" or not error.triggers() or room < 2:
            return ()
        kinds = self.space.kinds
        names = [name for name in kinds if kinds[name].ends in ("job", "rank") and not kinds[name].between]
        later = _after(context, error.triggers()[0])
        if not names or not later.candidates or self.draw(st.booleans()):
            return ()
        fault = _one_of(self.draw, self.space, names, later)
        return () if fault is None else (fault,)

    def passing(self, context: FaultContext, most: int, *, first: Sequence[str]) -> tuple[Fault, ...]:
        """Faults that end nothing, in the order in which they surely come, each before the one that ends the attempt."""
        kinds = self.space.kinds
        names = [name for name in self.subset if kinds[name].ends == "nothing" and not kinds[name].between]
        found: list[tuple[list[int], Fault]] = []
        for number in range(most):
            fault = _one_of(self.draw, self.space, first if first and not number else names, context)
            if fault is None:
                break
            places = [i for trigger in fault.triggers() if (i := context.golden.index(trigger.address)) is not None]
            if places and all(
                _ordered(context, places, others) or _ordered(context, others, places) for others, _ in found
            ):
                found.append((places, fault))

        def compare(one: tuple[list[int], Fault], other: tuple[list[int], Fault]) -> int:
            return -1 if _ordered(context, one[0], other[0]) else 1

        return tuple(fault for _, fault in sorted(found, key=functools.cmp_to_key(compare)))


def _after(context: FaultContext, trigger: Trigger) -> FaultContext:
    """The context of what comes surely after an operation that failed: the later saves.

    A save that failed may be tried again, which the golden run doesn't show; the saves after it have the same addresses.
    """
    i = context.golden.index(trigger.address)
    if i is None:
        return context.restricted(())
    step = context.golden.points[i].label.step
    later = [
        j
        for j in context.candidates
        if (at := context.golden.points[j].label.step) is not None and (step is None or at > step)
        if context.golden.surely_before(i, j)
    ]
    return context.restricted(later)


def _context(space: DrawSpace, predicted: PredictedRun, history: tuple[AttemptPlan, ...]) -> FaultContext:
    return FaultContext(
        scenario=space.scenario,
        census=space.census_index.census,
        golden=predicted.golden,
        attempt=len(history),
        exact=predicted.exact,
        interrupted=predicted.interrupted,
        history=history,
    )


def _one_of(draw: Draw, space: DrawSpace, names: Sequence[str], context: FaultContext) -> Fault | None:
    """A fault of one of these kinds, by weight, among those that can be injected in this context."""
    left = list(names)
    while left:
        name = _weighted(draw, space, left)
        strategy = space.kinds[name].strategy(context)
        if strategy is not None:
            fault: Fault = draw(strategy)
            return fault
        left.remove(name)
    return None


def _repeated(draw: Draw, context: FaultContext, names: Sequence[str]) -> Fault | None:
    """The fault by which an earlier attempt ended, once more, where its operations come again."""
    earlier = [fault for plan in context.history if (fault := ending_fault(plan.faults)) is not None]
    again = [fault for fault in earlier if fault.kind in names and _fits(context, fault)]
    return draw(st.sampled_from(again)) if again else None


def _fits(context: FaultContext, fault: Fault) -> bool:
    indices = [context.golden.index(trigger.address) for trigger in fault.triggers()]
    allowed = set(context.candidates)
    return all(i in allowed for i in indices) and context.golden.at_rest(fault.triggers()) is not None


def _ordered(context: FaultContext, places: Sequence[int], others: Sequence[int]) -> bool:
    """Whether each of these operations is surely before each of the others."""
    return all(context.golden.surely_before(i, j) for i in places for j in others)


def _can_go_on(draw: Draw, space: DrawSpace, plan: AttemptPlan, predicted: PredictedRun) -> bool:
    """Whether a further attempt can be foreseen well enough to aim at its operations.

    Where saves overlap, those beside the one that is hit may end or not, and only what a fault in a recovery leaves is foreseen.
    """
    ending = next((fault for fault in plan.faults if fault.ends != "nothing"), None)
    if ending is None or ending.blurs or ending is not plan.faults[-1]:
        return False
    if space.scenario.workload.outstanding > 1 and not all(_recovers(predicted, at) for at in ending.triggers()):
        return False
    if ending.ends == "perhaps":
        return bool(ending.triggers()) and draw(st.integers(0, 3)) == 0
    counts = predicted.golden.at_rest(ending.triggers())
    if counts is None or not ending.lingers:
        return counts is not None
    rank = ending.triggers()[0].address.rank
    done = list(counts)
    done[rank] = max(done[rank], _end_of_save(predicted, ending.triggers()[0].address))
    return predicted.golden.resumes_from(done) == predicted.golden.resumes_from(counts)


def _recovers(predicted: PredictedRun, trigger: Trigger) -> bool:
    i = predicted.golden.index(trigger.address)
    return i is not None and predicted.golden.points[i].label.step is None


def _end_of_save(predicted: PredictedRun, address: Address) -> int:
    """How many operations its rank has performed at the end of the save (or recovery) to which an operation belongs."""
    i = predicted.golden.index(address)
    assert i is not None
    own, step = predicted.golden.of_rank(address.rank), predicted.golden.points[i].label.step
    return max(predicted.golden.place(j) + 1 for j in own if predicted.golden.points[j].label.step == step)
