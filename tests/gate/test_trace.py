"""Property tests: whatever a program does under the gate, the replay of its trace is the disk, byte for byte."""

from __future__ import annotations

import os
import resource
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from chaosckpt.gate import Root
from chaosckpt.gate.install import choose_band
from chaosckpt.gate.replay import replay
from tests.gate.driver import run, snapshot
from tests.gate.programs import Step, program, programs

BAND = choose_band(resource.getrlimit(resource.RLIMIT_NOFILE)[1])[0]


def prepare(top: Path, name: str) -> tuple[str, str]:
    """A root to work in, and a directory outside with a link to it."""
    root, outside = top / name, top / f"{name}-outside"
    root.mkdir()
    outside.mkdir()
    (outside / "link").symlink_to(root)
    return str(root), str(outside)


def check(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory(prefix="gate-", dir="/dev/shm") as folder:
        top = Path(os.path.realpath(folder))
        disk, outside = prepare(top, "disk")
        again, _ = prepare(top, "again")
        tree = run(program(steps, disk, outside, BAND), roots=[Root("shared", disk)])
        assert tree.status == 0
        replay(tree.observed, {"shared": Path(again)})
        assert snapshot(Path(again)) == snapshot(Path(disk))
        addresses = [it.address for it in tree.decided]
        assert len(set(addresses)) == len(addresses)


relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.mark.timeout(200)
@settings(relaxed, max_examples=80)
@given(programs(processes=False))
def test_replay_equals_disk_for_one_process(steps: list[Step]) -> None:
    """One process, any mix of calls: the trace holds all that happened."""
    check(steps)


@pytest.mark.timeout(200)
@settings(relaxed, max_examples=60)
@given(programs(processes=True))
def test_replay_equals_disk_for_several_processes(steps: list[Step]) -> None:
    """Children that share, close, duplicate and exec with inherited descriptors leave no gap in the trace either."""
    check(steps)


def check_unnoticed(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory(prefix="gate-", dir="/dev/shm") as folder:
        top = Path(os.path.realpath(folder))
        steps = [step for step in steps if step[0] not in ("dup3_band", "dup2", "close_range", "dupfd")]
        gated, native = prepare(top, "gated"), prepare(top, "native")
        assert run(program(steps, *gated, BAND), roots=[Root("shared", gated[0])], keep_data=False).status == 0
        pid = os.fork()
        if not pid:
            try:
                program(steps, *native, BAND)()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        seen, expected = (Path(outside, "outcomes").read_text("utf-8").split("\n") for _, outside in (gated, native))
        assert list(zip(steps, seen, strict=True)) == list(zip(steps, expected, strict=True))
        assert snapshot(Path(gated[0])) == snapshot(Path(native[0]))


@pytest.mark.timeout(200)
@settings(relaxed, max_examples=60)
@given(programs(processes=False))
def test_a_program_does_not_notice_the_gate(steps: list[Step]) -> None:
    """Results, error numbers and the disk are those of the same program without a gate."""
    check_unnoticed(steps)
