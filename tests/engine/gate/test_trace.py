"""Property tests: whatever a program does under the gate, the replay of its trace is the disk, byte for byte."""

from __future__ import annotations

import os
import resource
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from chaosckpt.crashstates.replay import replay
from chaosckpt.engine.gate import Root
from chaosckpt.engine.gate.install import choose_band
from tests.engine.gate.driver import run, snapshot
from tests.engine.gate.programs import Step, program, programs


def check(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory(prefix="gate-", dir="/dev/shm") as folder:
        top = Path(os.path.realpath(folder))
        for name in ("disk", "again", "outside"):
            (top / name).mkdir()
        (top / "outside/link").symlink_to(top / "disk")
        band = lambda: choose_band(resource.getrlimit(resource.RLIMIT_NOFILE)[1])[0]  # noqa: E731
        tree = run(
            program(steps, str(top / "disk"), str(top / "outside"), band), roots=[Root("shared", str(top / "disk"))]
        )
        assert tree.status == 0
        replay(tree.observed, {"shared": top / "again"})
        assert snapshot(top / "again") == snapshot(top / "disk")
        addresses = [it.address for it in tree.decided]
        assert len(set(addresses)) == len(addresses)


relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.mark.timeout(120)
@settings(relaxed, max_examples=100)
@given(programs(processes=False))
def test_replay_equals_disk_for_one_process(steps: list[Step]) -> None:
    """One process, any mix of calls: the trace holds all that happened."""
    check(steps)


@pytest.mark.timeout(120)
@settings(relaxed, max_examples=60)
@given(programs(processes=True))
def test_replay_equals_disk_for_several_processes(steps: list[Step]) -> None:
    """Children that share, close, duplicate and exec with inherited descriptors leave no gap in the trace either."""
    check(steps)
