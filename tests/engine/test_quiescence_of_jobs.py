"""Rest of real jobs with threads of their own: heartbeats, polling loops, busy threads, and one that never stops writing."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

from chaosckpt.engine.golden.command_run import order_of
from chaosckpt.engine.golden.reach import quiescence_when_held, single_step
from chaosckpt.engine.runner.arena import open_local
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.quiescence import Quiescence
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.errors import UsageError
from chaosckpt.model.census import Pauses
from chaosckpt.model.operation import Address
from chaosckpt.model.topology import Topology
from tests.engine.case import scenario_of as scenario_of_target
from tests.engine.scripts import arena_for, scenario_of

BEATING = """
import os, sys, threading, time
out, kind = sys.argv[1:3]
work, waiting = [], threading.Event()
def heartbeat():
    while True:
        time.sleep(0.01)
def event():
    while not waiting.wait(0.01):
        pass
def watchdog():
    time.sleep(300)
def polled_saver():
    while True:
        time.sleep(0.01)
        if work:
            with open(out + "/later", "w") as file:
                file.write("later")
            work.clear()
def spin():
    while True:
        os.getppid()
def lease():
    while True:
        with open(out + "/lease", "w") as file:
            file.write("mine")
        time.sleep(0.05)
threading.Thread(target=globals()[kind], daemon=True).start()
if kind == "polled_saver":
    work.append(1)
    while work:
        time.sleep(0.003)
with open(out + "/ckpt-1", "w") as file:
    file.write("one")
"""
PATIENT = Deadlines(golden_seconds=0.1, floor_seconds=2.0, pauses=Pauses(first=0.05, between=0.01))
ONE = Topology((1,))


AT = Address(0, "main", "open_write", "out:ckpt-1", 1, 0)


def rest_of(kind: str, directory: Path, at: Address = AT) -> Quiescence | None:
    """How rest of this script is told while it is held there."""
    scenario = scenario_of((sys.executable, "-c", BEATING, "{out}", kind), directory)
    assert scenario.command is not None
    with arena_for(scenario) as arena:
        return quiescence_when_held(arena, order_of(arena, scenario.command, ONE), ONE, PATIENT, at)


@pytest.mark.parametrize("kind", ["heartbeat", "event"])
def test_a_heartbeat_is_at_rest_between_its_beats(kind: str, tmp_path: Path) -> None:
    """Goal: a thread that sleeps over and over does not keep anybody from telling rest exactly."""
    assert rest_of(kind, tmp_path) == "exact"


@pytest.mark.parametrize(("kind", "rest"), [("watchdog", "idle"), ("spin", "busy")])
def test_what_is_never_at_rest_is_watched(kind: str, rest: Quiescence, tmp_path: Path) -> None:
    """Goal: one long sleep, a busy loop: rest is told by time, and it is known that it was."""
    assert rest_of(kind, tmp_path) == rest


def test_a_thread_that_never_leaves_storage_alone_is_named(tmp_path: Path) -> None:
    """Goal: a lease that is renewed without end: a sentence that names thread and file, and no hang."""
    with pytest.raises(UsageError, match=r'rank 0: thread "python.*which works on lease'):
        rest_of("lease", tmp_path)


def test_a_saver_that_polls_is_not_held_for_the_job(tmp_path: Path) -> None:
    """Goal: with its own write held, the main thread polls for its end: all that is at rest, exactly."""
    later = Address(0, "thread", "write", "out:later", 1, 0)
    assert rest_of("polled_saver", tmp_path, later) == "exact"


POLLED = """
import threading, time
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
class Polled(TorchSaveAtomic):
    name = "polled"
    work = None
    def save(self, state, step):
        if not hasattr(self, "saver"):
            self.saver = threading.Thread(target=self.serve, daemon=True)
            self.saver.start()
        return super().save(state, step)
    def serve(self):
        while True:
            time.sleep(0.005)
            if self.work is not None:
                super().write(*self.work)
                self.work = None
    def write(self, *parts):
        self.work = parts
        while self.work is not None:
            time.sleep(0.003)
"""


def test_reach_of_a_target_that_polls_is_exact(tmp_path: Path) -> None:
    """Goal: a saver thread that polls for work, a rank that polls for its end: stepped like any other, and no sample by time."""
    file = tmp_path / "polled.py"
    file.write_text(POLLED)
    scenario = scenario_of_target(f"{file}:Polled", ((2,),), workload={"steps": 1})
    topology = scenario.topology.topologies[0]
    with closing(open_local(scenario)) as arena:
        order = AttemptOrder(attempt=0, intent="start", world_size=2, places=())
        samples, by_time = single_step(arena, order, topology, PATIENT, steps=1)
    assert not by_time
    held = [at for at in samples if at.op == "open_write" and at.path.endswith("rank-0.pt")]
    assert [at.role for at in held] == ["thread"]
    peer = samples[held[0]].latest[1]
    assert peer[-1].path.endswith("rank-1.pt"), "the other rank has written its part, and waits"
