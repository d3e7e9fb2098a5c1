"""Ranks of a learned launch: as its own launcher would start them, but forks of a warm interpreter, each under a gate of its own."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.campaign.preparation import prepare
from chaosckpt.engine.subjects import Prepared, subject_of
from chaosckpt.faults.cut import Cut
from chaosckpt.faults.sigkill import Sigkill
from chaosckpt.model import journal as j
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import AttemptPlan
from tests.engine.test_command_trees import TRAIN, operation_of, run, scenario_for

WAITING = (
    TRAIN
    + """
    # Ranks go on together: each waits until the others have saved this step, too.
    import time
    while any(not os.path.exists(f"{out}/part{other}-{step}") for other in range(count)):
        time.sleep(0.005)
"""
)
TOLD_WHEN_TERMINATED = (
    """
import os, signal, sys
def end(number, frame):
    open(f"{sys.argv[1]}/told-{os.environ['RANK']}", "w").close()
    os._exit(143)
signal.signal(signal.SIGTERM, end)
"""
    + WAITING
)
UNLIKE = (
    TRAIN
    + """
with open(f"{out}/how-{rank}", "w") as file:
    file.write(str(sys.orig_argv[1:]))
"""
)


def warm(scenario: Scenario) -> Scenario:
    assert scenario.command is not None
    return msgspec.structs.replace(scenario, command=msgspec.structs.replace(scenario.command, cold=False))


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scenario, Prepared]:
    scenario = warm(scenario_for(tmp_path_factory.mktemp("waiting"), TOLD_WHEN_TERMINATED))
    return scenario, prepare(scenario)


def test_ranks_are_started_by_the_harness_once_their_launch_is_known(waiting: tuple[Scenario, Prepared]) -> None:
    """Goal: both world sizes are learned; every operation has a reach, so that cuts through several ranks can be drawn."""
    scenario, prepared = waiting
    assert prepared.facts is not None
    assert prepared.launch == "fork"
    assert [len(launch.ranks) for launch in prepared.facts.warmth.launches] == [2, 1]
    assert prepared.facts.warmth.short_end, "it leaves the same files as the ordinary end"
    main = prepared.census.main
    assert len(main.reach) == len(main.points)
    assert subject_of(scenario, prepared).launcher == "the script itself"


def test_a_cut_strikes_both_ranks(waiting: tuple[Scenario, Prepared]) -> None:
    """Goal: as with a target: each rank stands before its own operation, and both die there."""
    scenario, prepared = waiting
    cut = Cut(at=tuple(operation_of(prepared, rank, "rename") for rank in (0, 1)))
    journal = run(scenario, prepared, AttemptPlan(faults=(cut,)))
    struck = [event for event in journal.events if isinstance(event, j.FaultInjected)]
    assert len(struck) == 1, journal.events
    seen = next(event for event in journal.events if isinstance(event, j.CheckpointsSeen))
    assert 4 not in seen.complete
    ended = [event.outcome for event in journal.events if isinstance(event, j.AttemptEnded)]
    assert ended[0] == "killed"
    assert set(ended[1:]) == {"finished"}


def test_the_others_are_terminated_when_a_rank_ends_badly(waiting: tuple[Scenario, Prepared]) -> None:
    """Goal: what its launcher would do: without it a rank that waits for the dead one would be taken for hung."""
    scenario, prepared = waiting
    fault = Sigkill(at=operation_of(prepared, 1, "rename"))
    subject = subject_of(scenario, prepared)
    journal = run(scenario, prepared, AttemptPlan(faults=(fault,)))
    ended = next(event for event in journal.events if isinstance(event, j.AttemptEnded))
    assert ended.outcome == "killed"
    exits = {event.rank: event for event in journal.events if isinstance(event, j.RankExited) and event.attempt == 0}
    assert (exits[0].exit_code, exits[1].signal) == (143, 9), exits
    assert subject.kinds().keys() >= {"sigkill", "sigstop", "cut"}


def test_a_rank_that_is_otherwise_when_it_is_warm_stays_cold(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Goal: what forks can't do as the user's launcher does is left to that, and the summary says why."""
    scenario = warm(scenario_for(tmp_path_factory.mktemp("unlike"), UNLIKE))
    prepared = prepare(scenario)
    assert prepared.facts is not None
    assert prepared.launch == "exec"
    told = [remark for remark in prepared.remarks if remark.startswith("every launch goes through")]
    assert told == [
        "every launch goes through the script itself, cold: with ranks started by chaosckpt, other files come out: out:how-0, out:how-1"
    ]


def test_ranks_of_no_python_script_stay_cold(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Goal: a launch that can't be learned works as ever."""
    directory = tmp_path_factory.mktemp("shell")
    scenario = warm(scenario_for(directory, TRAIN))
    launch = (directory / "launch.py").read_text()
    (directory / "launch.py").write_text(
        launch.replace(
            '[sys.executable, "train.py", sys.argv[1]]',
            '["bash", "-c", f"exec {sys.executable} -X utf8 train.py {sys.argv[1]}"]',
        )
    )
    prepared = prepare(scenario)
    assert prepared.launch == "exec"
    assert any("cold: no process said which rank it is" in remark for remark in prepared.remarks), prepared.remarks
