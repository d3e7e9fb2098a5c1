"""However a measurement ends, no process, no directory and no shared memory of its stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SCENARIO = """
name = "{target}"
[target]
use = "{target}"
[topology]
ranks = [[1, 1]]
"""
PLACES = [
    # While ranks save in processes of their own, and while another job saves beside.
    ("dcp-async-process", "save after", signal.SIGTERM),
    ("torch-save-atomic", "saves beside 1 neighbour", signal.SIGINT),
]


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory with a short name: saver processes have sockets in their temporary directory, whose paths have to be short."""
    with tempfile.TemporaryDirectory(prefix="m-") as path:
        yield Path(path)


class Started:
    """A measurement in a process of its own, known by a directory that it carries in its environment."""

    def __init__(self, directory: Path, target: str) -> None:
        self.directory = directory
        self.temporary = directory / "t"
        self.temporary.mkdir()
        scenario = directory / "scenario.toml"
        scenario.write_text(SCENARIO.format(target=target))
        environment = dict(os.environ, TMPDIR=str(self.temporary), OMP_NUM_THREADS="1", MEASURED=str(directory))
        command = [sys.executable, "-m", "chaosckpt", "measure", str(scenario), "--repeats", "1"]
        self.process = subprocess.Popen(
            command, env=environment, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.pids: set[int] = set()

    def until(self, words: str) -> str:
        """Read its progress up to a line with these words."""
        assert self.process.stderr is not None
        seen = ""
        for line in self.process.stderr:
            seen += line
            if words in line:
                self.pids |= set(self.alive())
                return seen
        raise AssertionError(f"it ended before {words!r}: {seen}")

    def alive(self) -> list[int]:
        """Processes with its mark in their environment."""
        mark = f"MEASURED={self.directory}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
                except OSError:
                    continue  # it ended meanwhile, or is another user's
        return found

    def left(self) -> list[str]:
        """What it left in its temporary directory; torch itself leaves an empty directory for compiled kernels."""
        return [path.name for path in self.temporary.iterdir() if "inductor" not in path.name]

    def shared_memory(self) -> list[str]:
        """Files of its processes in /dev/shm: torch names them after the process."""
        names = os.listdir("/dev/shm")
        return [name for name in names if any(f"_{pid}_" in name for pid in self.pids)]


@pytest.mark.parametrize(("target", "words", "number"), PLACES, ids=[words for _, words, _ in PLACES])
def test_an_interrupt_leaves_nothing(directory: Path, target: str, words: str, number: signal.Signals):
    """Ctrl-C and SIGTERM end it in order at any place: exit code 130, one word, nothing left."""
    started = Started(directory, target)
    started.until(words)
    started.process.send_signal(number)
    out, err = started.process.communicate()
    assert started.process.returncode == 130, err
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err
    assert out == ""
    assert started.alive() == []
    assert started.left() == []
    assert started.shared_memory() == []


def test_a_killed_measurement_takes_its_processes_along(directory: Path):
    """After SIGKILL nobody is left to tidy up but the nodes: they end, and remove the storage."""
    started = Started(directory, "torch-save-atomic")
    started.until("with a warm page cache")
    started.process.kill()
    started.process.communicate()  # returns when the last process that holds its standard error has ended
    assert started.alive() == []
    assert started.left() == []
