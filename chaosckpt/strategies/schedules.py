"""Whole schedules as a Hypothesis strategy: swarm style over fault kinds, biased to where faults have most to find.

The rules that keep a drawn fault from missing: at most one fault in an attempt ends anything, and nothing comes
after it; what comes before it does so surely, by the reach of the golden run; topology and storage change between
two attempts only; what follows an error that the target may survive is left to chance rarely.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from hypothesis import strategies as st

from chaosckpt.errors import UsageError
from chaosckpt.faults.context import FaultContext
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
def from_space(draw: Draw, space: DrawSpace) -> Schedule:
    """Schedules drawn from what is laid out already."""
    subset = _swarm(draw, space)
    dense = draw(st.booleans())
    limit = space.scenario.faults.max_attempts
    count = draw(st.sampled_from([n for n in (1, 1, 1, 2, 2, 2, 2, 3, 3, *range(4, limit + 1)) if n <= limit]))
    history: list[AttemptPlan] = []
    predicted = space.census_index.start()
    for attempt in range(count):
        last = attempt == count - 1
        plan, predicted = _attempt(draw, space, subset, predicted, tuple(history), last=last, dense=dense)
        if not plan.faults:
            break
        history.append(plan)
        if not last and not _can_go_on(draw, space, plan, predicted):
            break
        predicted = space.census_index.following(predicted, plan)
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


def _attempt(
    draw: Draw,
    space: DrawSpace,
    subset: Sequence[str],
    predicted: PredictedRun,
    history: tuple[AttemptPlan, ...],
    *,
    last: bool,
    dense: bool,
) -> tuple[AttemptPlan, PredictedRun]:
    """The faults of one attempt, in the order in which they are injected, and what it is then expected to do."""
    room = space.scenario.faults.max_per_attempt
    opening = _between(draw, space, subset, _context(space, predicted, history), room)
    predicted = space.census_index.turned(predicted, opening)
    if any(fault.blurs for fault in opening):
        return AttemptPlan(opening), predicted
    context = _context(space, predicted, history)
    ending = _ending(draw, space, subset, context, last=last) if len(opening) < room else None
    passing: tuple[Fault, ...] = ()
    free = room - len(opening) - (ending is not None)
    if free > 0 and (ending is None or dense or draw(st.integers(0, 3)) == 0):
        before = context if ending is None else context.narrowed(ending.triggers())
        if ending is None or ending.triggers():
            passing = _passing(draw, space, subset, before, free if dense else 1)
    faults = (*opening, *passing, *(() if ending is None else (ending,)))
    return AttemptPlan(faults), predicted


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
    offered = {name: strategy for name in names if (strategy := space.kinds[name].strategy(context)) is not None}
    if not offered:
        return None
    fault: Fault = draw(offered[_weighted(draw, space, list(offered))])
    return fault


def _between(
    draw: Draw, space: DrawSpace, subset: Sequence[str], context: FaultContext, room: int
) -> tuple[Fault, ...]:
    """At most one fault that is injected before the ranks start, in two of three attempts that can have one, and in one of
    three first ones."""
    names = [name for name in subset if space.kinds[name].between and space.kinds[name].strategy(context) is not None]
    if not names or room < 1 or draw(st.integers(0, 2)) >= (2 if context.attempt else 1):
        return ()
    fault = _one_of(draw, space, names, context)
    return () if fault is None else (fault,)


def _ending(draw: Draw, space: DrawSpace, subset: Sequence[str], context: FaultContext, *, last: bool) -> Fault | None:
    """The fault by which the attempt ends, or an error by which it may. Every attempt but the last one has one, where
    it can."""
    names = [name for name in subset if space.kinds[name].ends != "nothing" and not space.kinds[name].between]
    if last and draw(st.integers(0, 7)) == 7:
        return None
    if context.history and draw(st.integers(0, 5)) == 5:
        again = _repeated(draw, context, names)
        if again is not None:
            return again
    return _one_of(draw, space, names, context)


def _repeated(draw: Draw, context: FaultContext, names: Sequence[str]) -> Fault | None:
    """The fault by which an earlier attempt ended, once more, where its operations come again."""
    earlier = [fault for plan in context.history if (fault := ending_fault(plan.faults)) is not None]
    again = [fault for fault in earlier if fault.kind in names and _fits(context, fault)]
    return draw(st.sampled_from(again)) if again else None


def _fits(context: FaultContext, fault: Fault) -> bool:
    indices = [context.golden.index(trigger.address) for trigger in fault.triggers()]
    allowed = set(context.candidates)
    return all(i in allowed for i in indices) and context.golden.at_rest(fault.triggers()) is not None


def _passing(
    draw: Draw, space: DrawSpace, subset: Sequence[str], context: FaultContext, most: int
) -> tuple[Fault, ...]:
    """Faults that end nothing, in the order in which they surely come, each before the one that ends the attempt."""
    names = [name for name in subset if space.kinds[name].ends == "nothing" and not space.kinds[name].between]
    found: list[tuple[list[int], Fault]] = []
    for _ in range(most):
        fault = _one_of(draw, space, names, context)
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


def _ordered(context: FaultContext, places: Sequence[int], others: Sequence[int]) -> bool:
    """Whether each of these operations is surely before each of the others."""
    return all(context.golden.surely_before(i, j) for i in places for j in others)


def _can_go_on(draw: Draw, space: DrawSpace, plan: AttemptPlan, predicted: PredictedRun) -> bool:
    """Whether a further attempt can be foreseen well enough to aim at its operations.

    Where saves overlap, those beside the one that is hit may end or not, and only what a fault in a recovery leaves is foreseen.
    """
    ending = next((fault for fault in plan.faults if fault.ends != "nothing"), None)
    if ending is None or ending.blurs:
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
