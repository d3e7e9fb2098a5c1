from __future__ import annotations

import os
import subprocess
import sys

from chaosckpt.campaign.ray.reaper import SESSION, carrying, reap
from chaosckpt.engine.wire import storage
from tests.waiting import holds_within

SLEEPER = [sys.executable, "-c", "input()"]
DRIVER = """
import pathlib, subprocess, sys
from chaosckpt.campaign.ray.reaper import SESSION, Reaper
reaper = Reaper(sys.argv[1], pathlib.Path(sys.argv[2]))
subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], env={SESSION: sys.argv[1]}, stdout=subprocess.DEVNULL)
print("ready", flush=True)
if input() == "end":
    reaper.dismiss()
"""


def test_only_what_carries_the_token_is_killed(tmp_path) -> None:
    """Processes with the token go, one with another token stays; so does a directory without the mark."""
    mine = subprocess.Popen(SLEEPER, stdin=subprocess.PIPE, env=os.environ | {SESSION: "mine-1"})
    other = subprocess.Popen(SLEEPER, stdin=subprocess.PIPE, env=os.environ | {SESSION: "mine-12"})
    marked, plain = storage.make(tmp_path / "marked"), tmp_path / "plain"
    plain.mkdir()
    assert carrying("mine-1") == [mine.pid]
    reap("mine-1", marked)
    reap("mine-1", plain)
    mine.communicate()
    assert mine.returncode == -9
    assert other.poll() is None
    assert (marked.exists(), plain.exists()) == (False, True)
    other.communicate(b"\n")


def test_a_process_that_wrote_over_its_environment_is_known_by_its_files(tmp_path) -> None:
    """Ray's agents show a title where their environment was; what they hold open tells whose they are."""
    home, elsewhere = storage.make(tmp_path / "home"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    agents = []
    for directory in (home, elsewhere):
        with open(directory / "agent.log", "w") as log:
            command = ["ray::Agent", "-c", "input()"]
            agents.append(
                subprocess.Popen(command, executable=sys.executable, stdin=subprocess.PIPE, stderr=log, env={})
            )
    reap("mine-2", home)
    agents[0].communicate()
    assert agents[0].returncode == -9
    assert agents[1].poll() is None
    agents[1].communicate(b"\n")


def test_a_killed_driver_is_cleared_away(tmp_path) -> None:
    """When the driver is killed, what it started in other sessions ends, and its directory goes."""
    home = storage.make(tmp_path / "home")
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, "token-a", str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert driver.stdout is not None
    assert driver.stdout.readline() == b"ready\n"
    # While a process is being replaced by the program it is to run, it has no environment for an instant.
    assert holds_within(20, lambda: len(carrying("token-a")) == 1)
    driver.kill()
    driver.communicate()
    assert holds_within(20, lambda: not carrying("token-a") and not home.exists())


def test_a_dismissed_reaper_touches_nothing(tmp_path) -> None:
    """After an end in order the directory is the driver's own matter."""
    home = storage.make(tmp_path / "home")
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, "token-b", str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    driver.communicate(b"end\n")
    assert home.exists()
    reap("token-b", home)


def test_what_a_dead_driver_left_is_swept(tmp_path) -> None:
    """A marked directory of a process that is gone is removed; those of the living, and those without a mark, stay."""
    make = "import pathlib, sys; from chaosckpt.engine.wire import storage; storage.make(pathlib.Path(sys.argv[1]))"
    dead, alive, foreign = (tmp_path / f"{storage.PREFIX}{name}" for name in ("dead", "alive", "foreign"))
    subprocess.run([sys.executable, "-c", make, str(dead)], check=True)
    storage.make(alive)
    foreign.mkdir()
    assert storage.sweep(tmp_path) == [dead]
    assert sorted(tmp_path.iterdir()) == [alive, foreign]
