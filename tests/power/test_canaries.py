"""The oracle's power: each canary's one bug is caught, first by the invariant that its docstring names; correct targets stay silent."""

from __future__ import annotations

import pytest

from chaosckpt.campaign.execution import Executor, SharedExclusiveLock
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.subjects import Prepared, subject_of
from chaosckpt.model.census import Census
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import Schedule
from chaosckpt.model.verdict import Verdict
from tests.engine.case import scenario_of
from tests.power import canary_scenarios, directed
from tests.power.warm_arena import use

CANARIES = canary_scenarios.canaries()


class Unhurried(Deadlines, frozen=True):
    """On a busy machine one rank may come to a collective many seconds after its peer."""

    @property
    def collective_seconds(self) -> float:
        """Less than a hang is waited for when it is confirmed."""
        return 11.0


DEADLINES = Unhurried(golden_seconds=0.5, floor_seconds=4.0)


def verdict_of(arena: Arena, scenario: Scenario, schedule: Schedule, census: Census) -> Verdict:
    use(arena, scenario)
    executor = Executor(
        subject_of(scenario, Prepared(census=census)),
        arena,
        DEADLINES,
        SharedExclusiveLock(),
        lambda trial, event: None,
    )
    return executor.run(schedule, "0:0").verdict


def test_every_canary_is_put_to_the_test():
    """There are two dozen and more, and each has its schedule."""
    assert set(directed.ALL) == set(CANARIES)
    assert len(CANARIES) >= 24


@pytest.mark.parametrize("name", sorted(directed.ALL))
def test_a_canary_is_caught(arena: Arena, census: Census, name: str) -> None:
    """Its bug violates first the invariant that its docstring names, with every fault landed and judged."""
    verdict = verdict_of(arena, canary_scenarios.scenario(name), directed.ALL[name], census)
    assert verdict.primary is not None, verdict
    assert verdict.primary.invariant == CANARIES[name], verdict


@pytest.mark.parametrize("target", ["torch-save-atomic", "torch-save-async", "torch-save-checked"])
def test_correct_targets_are_silent(arena: Arena, census: Census, target: str) -> None:
    """What catches the canaries says nothing of the targets that they are derived from, and each of their invariants was judged."""
    names = sorted(directed.LIKE_ASYNC if target == "torch-save-async" else directed.LIKE_ATOMIC)
    judged: set[str] = set()
    for schedule in dict.fromkeys(directed.ALL[name] for name in names):
        scenario = scenario_of(target, ((1, 1), (1, 1, 1)), workload={"retries": 1})
        verdict = verdict_of(arena, scenario, schedule, census)
        assert verdict.outcome == "pass", (schedule, verdict)
        judged |= set(verdict.judged)
    assert {CANARIES[name] for name in names} <= judged
