"""Shrinking, with planted violations in place of trials: what fails stays failing, gets minimal, and ends alike."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaosckpt.campaign.shrink.shrinking import Outcome, Shrinker, shrink
from chaosckpt.faults.cut import Cut
from chaosckpt.faults.latency import Latency
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.strategies import CensusIndex, draw, schedules
from tests.strategies import dcp_model
from tests.strategies.kinds import KINDS

CENSUS = dcp_model.census()
SCENARIO = dcp_model.scenario()
CENSUS_INDEX = CensusIndex(CENSUS)
Predicate = Callable[[Schedule], bool]


def half_overwritten(schedule: Schedule) -> bool:
    """Planted: a kill leaves some rank's shard of a second or later save opened, and rank 0's metadata not renamed."""
    for plan, expected in zip(schedule.attempts, CENSUS_INDEX.attempts(schedule), strict=False):
        for fault in plan.faults:
            counts = expected.golden.at_rest(fault.triggers()) if fault.ends in ("job", "rank") else None
            for rank, count in enumerate(counts or ()):
                for i in expected.golden.of_rank(rank)[:count]:
                    point = expected.golden.points[i]
                    if (point.address.op, point.label.stage) != ("open_write", "persist") or point.label.step == 2:
                        continue
                    commit = expected.golden.commits[point.label.step or 0]
                    if counts is not None and counts[0] <= expected.golden.place(commit):
                        return True
    return False


def killed_while_loading(schedule: Schedule) -> bool:
    """Planted: something that can end an attempt strikes while a restarted job loads."""
    for number, (plan, expected) in enumerate(zip(schedule.attempts, CENSUS_INDEX.attempts(schedule), strict=False)):
        for trigger in (trigger for fault in plan.faults if fault.ends != "nothing" for trigger in fault.triggers()):
            i = expected.golden.index(trigger.address)
            if number and i is not None and expected.golden.points[i].label.stage == "load":
                return True
    return False


def torn_metadata(schedule: Schedule) -> bool:
    """Planted: only a torn write of the metadata does it; before and after are fine."""
    triggers = [trigger for fault in schedule.faults for trigger in fault.triggers()]
    return any(t.when == "torn" and t.address.path.endswith(".metadata.tmp") for t in triggers)


def failed_write(schedule: Schedule) -> bool:
    """Planted: an error of a write or an fsync, wherever."""
    return any(
        fault.kind == "errno" and fault.triggers()[0].address.op in ("write", "fsync") for fault in schedule.faults
    )


def slow_then_killed(schedule: Schedule) -> bool:
    """Planted: a latency and a kill in the same attempt, both needed."""
    return any({"latency"} < {f.kind for f in plan.faults} for plan in schedule.attempts)


PLANTED: list[Predicate] = [half_overwritten, killed_while_loading, torn_metadata, failed_write, slow_then_killed]


@functools.cache
def drawn(trials: int = 1500) -> list[Schedule]:
    return [draw(5, index, SCENARIO, CENSUS, KINDS) for index in range(1, trials)]


@functools.cache
def failing(predicate: Predicate, most: int = 25) -> list[Schedule]:
    return list(itertools.islice(filter(predicate, drawn()), most))


def without_one(schedule: Schedule) -> list[Schedule]:
    """The schedule without each of its faults in turn."""
    found = []
    for number, plan in enumerate(schedule.attempts):
        for i in range(len(plan.faults)):
            fewer = AttemptPlan(plan.faults[:i] + plan.faults[i + 1 :])
            plans = [*schedule.attempts[:number], fewer, *schedule.attempts[number + 1 :]]
            found.append(Schedule(tuple(plan for plan in plans if plan.faults)))
    return found


def out_of_place(schedule: Schedule) -> bool:
    """Whether some fault strikes an operation that its attempt is not going to do."""
    return any(
        course.golden.index(trigger.address) is None
        for plan, course in zip(schedule.attempts, CENSUS_INDEX.attempts(schedule), strict=False)
        for fault in plan.faults
        for trigger in fault.triggers()
    )


@pytest.mark.parametrize("predicate", PLANTED)
def test_every_failing_schedule_gets_minimal(predicate):
    """The result still fails, no fault of it can be left out, and it costs far less than the cap."""
    for schedule in failing(predicate):
        result = shrink(schedule, predicate, CENSUS)
        assert result.complete
        assert result.trials < 40
        assert predicate(result.schedule)
        assert not any(predicate(fewer) for fewer in without_one(result.schedule) if fewer.faults)


@pytest.mark.parametrize(
    ("predicate", "faults"),
    [
        (half_overwritten, ["whole job killed before rank 0 opened step_4/__0_0.distcp for writing"]),
        (
            killed_while_loading,
            [
                "whole job killed before rank 0 made the directory step_4",
                "whole job killed before rank 0 opened step_2/.metadata for reading",
            ],
        ),
        (torn_metadata, ["whole job killed after 1 byte of rank 0's first write to step_2/.metadata.tmp"]),
        (failed_write, ["rank 0's first write to step_2/__0_0.distcp failed with EIO"]),
    ],
)
def test_one_cause_ends_as_one_schedule(predicate, faults):
    """Whatever showed the violation first, the shrunk schedule is the same: the earliest operation on the lowest rank."""
    starts = failing(predicate)
    assert len(starts) >= 4
    ends = [shrink(schedule, predicate, CENSUS).schedule for schedule in starts]
    assert [fault.describe() for fault in ends[0].faults] == faults
    # A job that was only delayed, and so finished, is another way to have something to recover.
    alike = sum(end == ends[0] for end in ends)
    assert alike >= 0.9 * len(ends)


def in_batches(schedule: Schedule, predicate: Predicate, width: int, cap: int = 60) -> tuple[Schedule, int]:
    shrinker = Shrinker(schedule, CENSUS, cap=cap)
    while wanted := shrinker.wanted(width):
        assert len({candidate.digest for candidate in wanted}) == len(wanted) <= width
        for candidate in reversed(wanted):
            shrinker.tell(candidate, predicate(candidate))
    return shrinker.best, shrinker.trials


@pytest.mark.parametrize("cap", [3, 9, 60])
@pytest.mark.parametrize("predicate", PLANTED)
def test_any_width_gives_the_same(predicate, cap):
    """Outcomes that come in batches, in any order, lead to the same schedule at the same count, also when the cap ends it."""
    for schedule in failing(predicate, most=4):
        results = {width: in_batches(schedule, predicate, width, cap) for width in (1, 2, 7)}
        assert results[1] == results[2] == results[7]
        assert results[1][1] <= cap


def test_the_cap_keeps_the_best_so_far():
    """At the cap the search stops with what it has, which still fails, and says that it isn't complete."""
    schedule = max(failing(half_overwritten), key=lambda schedule: len(schedule.faults))
    result = shrink(schedule, half_overwritten, CENSUS, cap=2)
    assert (result.trials, result.complete) == (2, False)
    assert half_overwritten(result.schedule)


def test_an_interrupted_search_goes_on():
    """Given the journal of outcomes so far, no trial is run twice and the result is the same."""
    schedule = failing(killed_while_loading)[0]
    whole = shrink(schedule, killed_while_loading, CENSUS)
    asked: list[str] = []

    def still_fails(candidate: Schedule) -> bool:
        asked.append(candidate.digest)
        return killed_while_loading(candidate)

    rest = shrink(schedule, still_fails, CENSUS, known=whole.journal[:5])
    assert rest.schedule == whole.schedule
    assert rest.trials == whole.trials
    assert asked == [digest for digest, _ in whole.journal[5:]]


def test_inconclusive_is_no():
    """A candidate whose trial tells nothing is not taken."""

    def open_question(_: Schedule) -> Outcome:
        return None

    schedule = failing(half_overwritten)[0]
    assert shrink(schedule, open_question, CENSUS).schedule == schedule


def test_later_triggers_follow_an_earlier_attempt():
    """When the first kill moves to an earlier save, what strikes the recovery moves to that step's files."""
    rename = CENSUS.main.points[CENSUS.main.commits[6]].address
    recovery = CENSUS.run(dcp_model.MAIN, 6)
    assert recovery is not None
    read = next(
        point.address for point in recovery.points if point.address.op == "open_read" and point.address.rank == 1
    )
    start = Schedule((AttemptPlan((Cut((Trigger(rename, "after"),)),)), AttemptPlan((Cut((Trigger(read),)),))))
    result = shrink(start, killed_while_loading, CENSUS)
    assert result.schedule.attempts[1].faults[0].triggers()[0].address.path == "shared:step_2/.metadata"


def test_the_control_without_faults_is_never_tried():
    """Nothing is asked of a schedule that has one fault which can't get simpler."""
    first = CENSUS.main.of_rank(0)[0].address
    tried: list[Schedule] = []

    def still_fails(candidate: Schedule) -> bool:
        tried.append(candidate)
        return True

    start = Schedule((AttemptPlan((Cut((Trigger(first),)),)),))
    assert shrink(start, still_fails, CENSUS).schedule == start
    assert tried == []


def has_kinds(kinds: frozenset[str]) -> Predicate:
    return lambda schedule: kinds <= {fault.kind for fault in schedule.faults}


@given(schedule=schedules(SCENARIO, CENSUS, KINDS), data=st.data())
@settings(max_examples=100, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_set_of_needed_kinds_is_kept(schedule: Schedule, data: st.DataObject):
    """Whichever kinds a violation needs, one fault of each is left, and none besides but what ends an earlier attempt.

    A fault that strikes a resumed attempt needs the death before it, if its operation comes nowhere else. The cap holds.
    """
    present = sorted({fault.kind for fault in schedule.faults})
    needed = frozenset(data.draw(st.sets(st.sampled_from(present), min_size=1))) if present else frozenset()
    result = shrink(schedule, has_kinds(needed), CENSUS)
    kinds = [fault.kind for fault in result.schedule.faults]
    assert result.trials <= 60
    assert has_kinds(needed)(result.schedule)
    if result.complete and needed:
        openers = [
            fault.kind for plan in result.schedule.attempts[:-1] for fault in plan.faults if fault.ends != "nothing"
        ]
        assert Counter(kinds) - Counter(needed) <= Counter(openers)
        # None of them can go without another one losing its operation.
        fewer = [left for left in without_one(result.schedule) if has_kinds(needed)(left)]
        assert all(out_of_place(left) for left in fewer)


def test_latency_goes_down_and_stays_before_its_kill():
    """Fields shrink to their least value, and the faults keep their order."""
    for schedule in failing(slow_then_killed, most=5):
        (plan,) = shrink(schedule, slow_then_killed, CENSUS).schedule.attempts
        slow: Fault = plan.faults[0]
        assert isinstance(slow, Latency)
        assert slow.latency_ms == 1
