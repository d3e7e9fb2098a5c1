"""The oracle's power: each canary's one bug is caught, first by the invariant that its comment names; a correct target stays silent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chaosckpt.engine.arena import node_settings
from chaosckpt.faults.cut import Cut
from chaosckpt.faults.shared_storage_loss import SharedStorageLoss
from chaosckpt.faults.sigkill import Sigkill
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.model.verdict import Verdict
from tests.engine.case import Case, scenario_of

OWN_OPERATIONS = {
    "canary-in-place": "newest-complete",
    "canary-mixed": "complete-only",
    "canary-own-newest": "rank-agreement",
    "canary-torn": "complete-only",
}
"""Canaries that write in a way of their own, and so have a census of their own."""
LIKE_ATOMIC = {
    "canary-blocked": "progress",
    "canary-exit-zero": "clear-failure",
    "canary-hang": "clear-failure",
    "canary-misreport": "report-truth",
    "canary-oldest": "newest-complete",
    "canary-optimizer-lost": "full-state",
    "canary-sampler-lost": "full-state",
    "canary-scheduler-lost": "full-state",
    "canary-shared-rng": "full-state",
    "canary-silent-start": "clear-failure",
}
"""Canaries that save as torch-save-atomic does."""


def schedules(case: Case) -> Iterator[Schedule]:
    """A restart, lost storage, and every single death in the second save, most telling first."""
    restart = case.cut_after_commit(3)
    yield _schedule([restart])
    yield _schedule([restart], [SharedStorageLoss()])
    points = [point for point in case.census.main.points if point.label.step == 2 and not point.reads]
    for point in sorted(points, key=lambda point: point.address.op != "write"):
        for trigger in (Trigger(point.address, "before"), Trigger(point.address, "torn", (point.length or 0) // 2)):
            if trigger.when == "before" or trigger.torn_bytes:
                yield _schedule([Cut((trigger,))])
        yield _schedule([Sigkill(Trigger(point.address, "after"))])


def _schedule(*attempts: list[Fault]) -> Schedule:
    return Schedule(tuple(AttemptPlan(tuple(faults)) for faults in attempts))


def first_violation(case: Case, canary: Case, most: int = 120) -> Verdict | None:
    for number, schedule in zip(range(most), schedules(case), strict=False):
        _, verdict = canary.run_schedule(schedule, f"0:{number}")
        if verdict.outcome == "violation":
            return verdict
    return None


def use(atomic: Case, name: str) -> Case:
    """The canary on the warm arena."""
    case = Case(scenario_of(name), atomic.arena)
    atomic.arena.nodes[0].call("use", node_settings(case.scenario, atomic.arena.directory, gate=True))
    return case


@pytest.mark.parametrize(("name", "invariant"), sorted(LIKE_ATOMIC.items()))
def test_a_canary_that_saves_like_the_correct_target_is_caught(atomic: Case, name: str, invariant: str) -> None:
    """Goal: its bug violates this invariant first."""
    census_of = _measured(atomic)
    verdict = first_violation(census_of, use(atomic, name))
    assert verdict is not None
    assert verdict.primary is not None
    assert verdict.primary.invariant == invariant, verdict


@pytest.mark.parametrize(("name", "invariant"), sorted(OWN_OPERATIONS.items()))
def test_a_canary_with_operations_of_its_own_is_caught(atomic: Case, name: str, invariant: str) -> None:
    """Goal: its bug violates this invariant first, at an operation of its own census."""
    canary = use(atomic, name)
    verdict = first_violation(canary, canary)
    assert verdict is not None
    assert verdict.primary is not None
    assert verdict.primary.invariant == invariant, verdict


def test_the_correct_target_stays_silent_on_the_same_schedules(atomic: Case) -> None:
    """Goal: what catches the canaries says nothing of the target that they are derived from, and each invariant was judged."""
    _measured(atomic)
    use(atomic, "torch-save-atomic")
    judged: set[str] = set()
    for number, schedule in zip(range(40), schedules(atomic), strict=False):
        _, verdict = atomic.run_schedule(schedule, f"0:{number}")
        assert verdict.outcome == "pass", verdict
        judged |= set(verdict.judged)
    assert judged == set(LIKE_ATOMIC.values()) | set(OWN_OPERATIONS.values())


def _measured(atomic: Case) -> Case:
    """The correct target, with its census taken while the arena runs it."""
    if not atomic.measured:
        use(atomic, "torch-save-atomic")
        assert atomic.census.main.commits
    return atomic
