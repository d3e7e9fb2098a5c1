"""A real torch script as a command: what is known of it, and of each launch in a trial, without a line that it prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from chaosckpt.campaign.judging import check
from chaosckpt.campaign.preparation import deadlines_of, prepare
from chaosckpt.engine.runner.trial import run_trial
from chaosckpt.engine.subjects import Prepared, subject_of
from chaosckpt.faults.cut import Cut
from chaosckpt.model import journal as j
from chaosckpt.model.fault import Trigger
from chaosckpt.model.scenario import Scenario, TopologySettings
from chaosckpt.model.schedule import AttemptPlan, Schedule
from tests.engine.scripts import COUNTING, python, scenario_of

SCRIPTS = Path(__file__).parents[2] / "observers" / "scripts"


def alone(directory: Path, argv: Sequence[str], **signs: object) -> Scenario:
    """A scenario of a command with one rank."""
    command = scenario_of(argv, directory, **signs)
    return msgspec.structs.replace(command, topology=TopologySettings(ranks=((1,),)))


@pytest.fixture(scope="module")
def lacking(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scenario, Prepared]:
    """A script whose restarts begin its data anew."""
    scenario = alone(tmp_path_factory.mktemp("lacking"), python(SCRIPTS / "lacks.py", "{out}", "data"))
    return scenario, prepare(scenario)


def test_a_plain_restart_that_differs_is_told_before_any_fault(lacking: tuple[Scenario, Prepared]) -> None:
    """Goal: without an option, with the part, and the step whose part it is."""
    scenario, prepared = lacking
    seen = subject_of(scenario, prepared).training_seen
    assert (seen.observer, seen.restarts.tried, seen.restarts.differing, seen.restarts.parts) == (
        "torch",
        2,
        2,
        ("data",),
    )
    told = [remark for remark in prepared.remarks if remark.startswith("after a plain restart")]
    assert told == [
        "after a plain restart from step 2, without any fault, rank 0 makes training step 3 with the data of training step 1 of the "
        "uninterrupted run (and so after those from step 4)"
    ]
    assert not any("--resumed" in remark for remark in prepared.remarks), "it is known already"


def test_each_launch_of_a_trial_tells_what_it_resumed_from(lacking: tuple[Scenario, Prepared]) -> None:
    """Goal: `newest-complete` is judged, and holds."""
    scenario, prepared = lacking
    rename = [point.address for point in prepared.census.main.points if point.address.op == "rename"][1]
    schedule = Schedule((AttemptPlan((Cut((Trigger(rename, "before"),)),)),))
    subject = subject_of(scenario, prepared)
    arena = subject.open_arena()
    try:
        journal = run_trial(subject, schedule, arena, trial="1:0", deadlines=deadlines_of(prepared.census))
    finally:
        arena.close()
    said = [(event.attempt, event.step) for event in journal.events if isinstance(event, j.Said)]
    assert said == [(1, 2)]
    verdict = check(subject.scenario, journal)
    assert verdict.outcome == "pass", verdict
    assert "newest-complete" in verdict.judged


def test_nobody_looks_where_that_was_asked(tmp_path: Path) -> None:
    """Goal: --no-observe; what it leaves unjudged is said, as where there is nothing to be seen."""
    (tmp_path / "count.py").write_text(COUNTING)
    for asked, why in ((True, "--no-observe was given"), (False, "no step of a torch optimizer was seen")):
        scenario = alone(tmp_path, python(tmp_path / "count.py", "{out}"), no_observe=asked)
        prepared = prepare(scenario)
        seen = subject_of(scenario, prepared).training_seen
        assert (seen.observer, seen.restarts.tried, seen.unjudged) == (None, 0, {"all": why})
        assert any("--resumed" in remark for remark in prepared.remarks)
