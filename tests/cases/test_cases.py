"""The reported cases: each fires on the broken shape, named by its invariant, and is silent on the right one."""

from __future__ import annotations

import pytest

from chaosckpt.faults.world_size import WorldSize
from chaosckpt.model import journal as j
from chaosckpt.model.topology import Topology
from chaosckpt.scenario import load as scenarios
from tests.cases.catalogue import CASES, DIRECTORY, Case, schedule_of
from tests.cases.conftest import IMPATIENT, PATIENT, Run


def name(case: Case) -> str:
    return case.broken


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_broken_shape_is_named(run: Run, case: Case) -> None:
    """Goal: one trial with the faults that were reported violates the invariant that tells what is wrong."""
    _, verdict = run(case.scenario, case.schedule, IMPATIENT if case.waits else PATIENT)
    assert verdict.primary is not None, verdict
    assert verdict.primary.invariant in (case.invariant, *case.also), verdict


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_right_shape_is_silent(run: Run, case: Case) -> None:
    """Goal: under the same faults the right shape passes."""
    _, verdict = run(case.right_scenario, case.right_schedule)
    assert verdict.outcome == "pass", verdict


def test_a_clear_refusal_is_right(run: Run) -> None:
    """Goal: C31, where nothing is wrong: a target that never claimed to bear another world size may refuse it, clearly."""
    scenario = scenarios.read(DIRECTORY / "c31.toml")
    journal, verdict = run(scenario, schedule_of([[], [WorldSize(Topology((2,)))]]))
    assert verdict.outcome == "pass", verdict
    refusals = [event for event in journal.events if isinstance(event, j.Raised)]
    assert {event.rank for event in refusals} == {0, 1}
    assert all("was saved by 1 ranks; 2 can't load it" in event.message for event in refusals)


def test_every_scenario_is_tested() -> None:
    """Goal: no scenario of a case lies about untested."""
    tested = (
        {case.broken for case in CASES}
        | {case.right for case in CASES}
        | {"c31"}
        | {f"async-{manner}" for manner in ("close", "destroyed-group", "exit")}
    )
    assert {path.stem for path in DIRECTORY.glob("*.toml")} <= tested
