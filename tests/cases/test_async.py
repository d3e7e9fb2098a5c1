"""Asynchronous saves by DCP under every manner of a training script: what a correct target owes, and that it is silent then."""

from __future__ import annotations

import os
import select
from collections.abc import Sequence
from pathlib import Path

import pytest

from chaosckpt.engine.wire.process_tree import descendants
from chaosckpt.faults.errno import StorageError
from chaosckpt.faults.latency import Latency
from chaosckpt.faults.saver_kill import SaverKill
from chaosckpt.model import journal as j
from chaosckpt.model.fault import Fault
from chaosckpt.model.scenario import Scenario
from chaosckpt.scenario import load as scenarios
from tests.cases.catalogue import DIRECTORY, SAVER, SLOW_MS, at, killed, schedule_of
from tests.cases.conftest import PATIENT, Run

SLOW_SAVE: list[Fault] = [Latency(at("step-000002/__0_0.distcp", role="thread"), SLOW_MS)]
KILLED_IN_SAVE = killed(SAVER)
SAVER_ERROR: list[Fault] = [StorageError(at("step-000002/__1_0.distcp", "write", rank=1, role="thread"), "EIO")]
PROCESS_RANKS = {"topology": {"ranks": [[1]]}, "workload": {"steps": 2, "save_every": 1, "layers": 1}}


def manner(name: str) -> Scenario:
    return scenarios.read(DIRECTORY / f"async-{name}.toml")


def shipped(name: str) -> Scenario:
    return scenarios.read(DIRECTORY.parent / f"{name}.toml")


def recovered(journal: j.Journal, attempt: int) -> set[int | None]:
    return {event.chosen for event in journal.events if isinstance(event, j.Recovered) and event.attempt == attempt}


@pytest.mark.parametrize("faults", [SLOW_SAVE, KILLED_IN_SAVE, SAVER_ERROR], ids=["slow", "killed", "error"])
@pytest.mark.parametrize("name", ["dcp-async", "dcp-async-overlapping"])
def test_a_correct_target_is_silent(run: Run, name: str, faults: Sequence[Fault]) -> None:
    """Goal: a save slower than the interval, a kill while the thread writes and an error of the thread cost nothing owed."""
    _, verdict = run(shipped(name), schedule_of([faults]))
    assert verdict.outcome == "pass", verdict


def test_two_saves_are_under_way(run: Run) -> None:
    """Goal: the overlap that is claimed happens, and no third save joins."""
    journal, _ = run(shipped("dcp-async-overlapping"), schedule_of([SLOW_SAVE]))
    assert max(len(event.saves) for event in journal.events if isinstance(event, j.Outstanding)) == 2


def test_an_error_of_the_saver_is_raised_on_every_rank(run: Run) -> None:
    """Goal: whoever awaits the save is told what its thread met, on the ranks whose own thread was well, too."""
    journal, _ = run(shipped("dcp-async"), schedule_of([SAVER_ERROR]))
    raised = {event.rank: event.message for event in journal.events if isinstance(event, j.Raised)}
    assert sorted(raised) == [0, 1]
    assert all("rank 1: OSError(5, 'Input/output error')" in message for message in raised.values())


def test_a_script_that_leaves_without_awaiting(run: Run) -> None:
    """Goal: the last save is cut off, wherever; what was acknowledged before is owed and found, and nothing else is asked."""
    journal, verdict = run(manner("exit"), schedule_of([[]]))
    assert verdict.outcome == "pass", verdict
    assert recovered(journal, 1) <= {2, 4}


@pytest.mark.parametrize("faults", [[], KILLED_IN_SAVE], ids=["none", "killed"])
def test_a_script_that_only_closes(run: Run, faults: Sequence[Fault]) -> None:
    """Goal: close() finishes the last save, so that it is there afterwards, unless the job was killed."""
    journal, verdict = run(manner("close"), schedule_of([faults]))
    assert verdict.outcome == "pass", verdict
    assert recovered(journal, 1) == ({2} if faults else {4})


def test_a_script_that_destroys_the_group_first(run: Run) -> None:
    """Goal: torch's saver thread can't finish without its group; it says so each time, and what was acknowledged is still there."""
    journal, verdict = run(manner("destroyed-group"), schedule_of([[]]))
    assert verdict.primary is not None, verdict
    assert verdict.primary.invariant == "progress", verdict
    # How torch says so depends on where in its collective the saver thread is when the group goes.
    assert verdict.primary.error_type in ("ValueError", "RuntimeError"), verdict
    assert recovered(journal, 1) == {2}


def test_a_saver_process_outlives_the_group(run: Run) -> None:
    """Goal: in a process of its own the saver has a group of its own: the same script ends well."""
    broken = manner("destroyed-group")
    scenario = scenarios.parse(
        {
            "name": "destroyed-group-process",
            "target": {"use": "dcp-async-process"},
            "workload": {"steps": 2, "save_every": 2, "layers": 1, "destroys_group": broken.workload.destroys_group},
            "topology": {"ranks": [[2]]},
        }
    )
    journal, verdict = run(scenario, schedule_of([[]]), PATIENT)
    assert verdict.outcome == "pass", verdict
    assert recovered(journal, 1) == {2}


def test_the_saver_process_is_killed(run: Run) -> None:
    """Goal: the rank notices that its saver is gone, doesn't acknowledge, and leaves nothing that runs on."""
    scenario = scenarios.parse({"name": "saver-kill", "target": {"use": "dcp-async-process"}, **PROCESS_RANKS})
    fault = SaverKill(at("step-000002/__0_0.distcp", role="child"))
    journal, verdict = run(scenario, schedule_of([[fault]]), PATIENT)
    assert verdict.outcome == "pass", verdict
    assert recovered(journal, 1) == {1}
    (raised,) = [event for event in journal.events if isinstance(event, j.Raised)]
    assert "Checkpoint background process is dead" in raised.message
    assert all(map(ends, savers()))


def savers() -> list[int]:
    """Processes below this one that torch has spawned as savers."""
    found = []
    for pid in descendants(os.getpid()):
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if b"DCP_USE_PREFIX_STORE=1" in environment:
            found.append(pid)
    return found


def ends(pid: int) -> bool:
    """Whether a process that was just sent SIGKILL has ended; it may take its time to."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(descriptor) as process:
        readable, _, _ = select.select([process], [], [], 20)
    return bool(readable)
