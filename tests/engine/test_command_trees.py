"""Trees with several ranks: each is struck by itself, stopped or killed, and their number changes between two launches."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from chaosckpt.campaign.preparation import prepare
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.trial import run_trial
from chaosckpt.engine.subjects import Prepared, subject_of
from chaosckpt.faults.sigkill import Sigkill
from chaosckpt.faults.sigstop import Sigstop
from chaosckpt.faults.world_size import WorldSize
from chaosckpt.model import journal as j
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.scenario import Scenario, TopologySettings
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.model.topology import Topology
from tests.engine.scripts import scenario_of

LAUNCHER = """
import os, subprocess, sys
count = int(sys.argv[2])
ranks = [subprocess.Popen([sys.executable, "train.py", sys.argv[1]], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(count)})
         for rank in range(count)]
codes = [rank.wait() for rank in ranks]
sys.exit(next((1 for code in codes if code), 0))
"""
"""Starts the ranks as torchrun does, and waits for all."""
TRAIN = """
import os, re, sys
out, rank, count = sys.argv[1], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
done = sorted(int(f[1]) for n in os.listdir(out) if (f := re.fullmatch(f"part{rank}-([0-9]+)", n)))
step = int(open(f"{out}/part{rank}-{done[-1]}").read()) if done else 0
if step and rank == 0:
    print("resumed from step", step, "with", count, flush=True)
while step < 6:
    step += 2
    with open(f"{out}/new{rank}", "w") as file:
        file.write(f"{step}")
    os.replace(f"{out}/new{rank}", f"{out}/part{rank}-{step}")
    if rank == 0:
        print("saved step", step, flush=True)
"""


def scenario_for(directory: Path, train: str) -> Scenario:
    """A scenario of a launcher with two ranks, and then one, of this script."""
    (directory / "launch.py").write_text(LAUNCHER)
    (directory / "train.py").write_text(train)
    command = scenario_of((sys.executable, "launch.py", "{out}", "{nproc}"), directory, checkpoints="{out}/part*-*",
                          resumed=r"resumed from step (\d+)", cold=True)  # fmt: skip
    return Scenario(name="tree", command=command.command, topology=TopologySettings(ranks=((2,), (1,))))


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return scenario_for(tmp_path, TRAIN)


def run(scenario: Scenario, prepared: Prepared, *attempts: AttemptPlan) -> j.Journal:
    subject = subject_of(scenario, prepared)
    arena = subject.open_arena()
    try:
        deadlines = Deadlines(golden_seconds=1.0, floor_seconds=2.0)
        return run_trial(subject, Schedule(attempts=attempts), arena, trial="1:0", deadlines=deadlines)
    finally:
        arena.close()


def operation_of(prepared: Prepared, rank: int, op: str) -> Trigger:
    """The first such operation of a rank's second save in the census."""
    found = [p for p in prepared.census.main.of_rank(rank) if p.address.op == op and p.label.step == 4]
    return Trigger(address=found[0].address, when="before")


def test_one_rank_of_a_tree_is_struck_by_itself(scenario: Scenario) -> None:
    """Goal: ranks are told apart by RANK; one is killed, or stopped, while the other lives on, and evidence says which."""
    prepared = prepare(scenario)
    assert {point.address.rank for point in prepared.census.main.points} == {0, 1}
    assert {"sigstop", "sigkill", "world-size"} <= set(subject_of(scenario).kinds())
    for kind in (Sigkill, Sigstop):
        fault: Fault = kind(at=operation_of(prepared, 1, "rename"))
        journal = run(scenario, prepared, AttemptPlan(faults=(fault,)))
        landed = [event for event in journal.events if isinstance(event, j.FaultInjected)]
        assert [event.operation.address.rank for event in landed if event.operation] == [1], journal.events
        assert [event.label for event in landed] == [
            "persist of save 4"
        ]  # by its temporary name it isn't known while it runs
        seen = next(event for event in journal.events if isinstance(event, j.CheckpointsSeen))
        # The step of rank 1's part is missing, that of rank 0 went on to the end.
        ended = next(event for event in journal.events if isinstance(event, j.AttemptEnded))
        assert ended.outcome == "killed"
        assert 2 in seen.complete
        assert 4 not in seen.complete


def test_the_number_of_ranks_changes_between_two_launches(scenario: Scenario) -> None:
    """Goal: {nproc} is the number of this launch, and the golden runs know both."""
    prepared = prepare(scenario)
    assert {sum(topology.ranks) for topology in prepared.census.topologies} == {1, 2}
    fault = Sigkill(at=operation_of(prepared, 0, "rename"))
    journal = run(scenario, prepared, AttemptPlan(faults=(fault,)), AttemptPlan(faults=(WorldSize(to=Topology((1,))),)))
    starts = [event for event in journal.events if isinstance(event, j.AttemptStarted)]
    assert [sum(event.ranks) for event in starts] == [2, 1, 1]
    lines = [event.line for event in journal.events if isinstance(event, j.Said) and event.what == "resumed"]
    assert lines
    assert all(line.endswith("with 1") for line in lines)
    read = [event.read for event in journal.events if isinstance(event, j.CheckpointsSeen)]
    assert read[0] == ()
    assert read[1] == (2,)
