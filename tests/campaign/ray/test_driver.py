from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaosckpt.campaign.ray.reaper import carrying
from tests.campaign.ray.ray_cases import expected
from tests.waiting import holds_within

ROOT = Path(__file__).parents[3]


def driver(*arguments: str, temporary: Path | None = None) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    if temporary is not None:
        environment["TMPDIR"] = str(temporary)
    command = [sys.executable, "-m", "tests.campaign.ray.ray_driver", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, start_new_session=True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill", "ctrl-c"])
def test_nothing_outlives_the_driver(number: signal.Signals, tmp_path: Path) -> None:
    """Killed in the middle of a trial, or stopped by Ctrl-C, the driver leaves no process and no storage 5 seconds later."""
    process = driver("session", str(tmp_path))
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        assert told["kept"], "Ray's signal handlers took the place of ours"
        assert len(carrying(told["session"])) > 4  # raylet, actors, node processes, fork servers
        if number == signal.SIGKILL:
            process.kill()
        else:
            os.killpg(process.pid, number)
        process.wait()  # after Ctrl-C an end in order
    finally:
        process.kill()  # a driver that heeds no signal would run trials for ever
    assert holds_within(5, lambda: not carrying(told["session"]))
    assert holds_within(5, lambda: not any(os.path.exists(home) for home in told["homes"]))
    process.stdout.close()
    if number == signal.SIGINT:
        assert os.listdir(tmp_path) == []


def test_one_rank_on_each_of_two_raylets() -> None:
    """Two raylets carry one rank each in one process group at the Ray address; one rank is killed, and the trial comes out right."""
    process = driver("raylets")
    output, _ = process.communicate(timeout=250)
    found = json.loads(output.splitlines()[-1])
    assert found["story"] == expected("sigkill")
    assert found["raylets"] == 2
    assert found["address"] != "127.0.0.1"
    assert not found["own"]
    assert process.returncode == 0
