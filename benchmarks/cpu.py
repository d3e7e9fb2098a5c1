"""CPU time of processes: of a live tree with all that it has reaped, and of a program that has ended."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import msgspec

from chaosckpt.engine.wire.process_tree import descendants

_TICKS = os.sysconf("SC_CLK_TCK")
_UTIME, _CSTIME = 11, 15
ENDING_SECONDS = 30
LONGEST_SECONDS = 3600


def of_tree(pid: int) -> float:
    """CPU seconds, user and system, of a live process and its live descendants, each with the children that it has reaped."""
    return sum(_of_process(process) for process in descendants(pid))


def _of_process(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0  # it ended meanwhile; whoever reaps it has its time
    return sum(int(field) for field in fields[_UTIME : _CSTIME + 1]) / _TICKS


class Ran(msgspec.Struct, frozen=True):
    """A program that has ended. `began` and `seconds` are wall-clock time; `cpu_seconds` include all that it started."""

    output: bytes
    status: int
    began: float
    seconds: float
    cpu_seconds: float


def run(command: Sequence[str], expected: Sequence[int] = (0,), environment: Mapping[str, str] | None = None) -> Ran:
    """Run a program to its end; its output is what it wrote to stdout. It gets SIGTERM, and time to clean up, when this is interrupted.

    Raises click.ClickException with the end of what it printed, when its exit status is none of those expected.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began, started = time.time(), time.monotonic()
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment, start_new_session=True
        )
        try:
            status = process.wait(timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired as error:
            end(process)
            raise click.ClickException(f"{' '.join(command[:6])} did not end within {LONGEST_SECONDS} s") from error
        except BaseException:
            end(process)
            raise
        seconds = time.monotonic() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        stdout.seek(0)
        output = stdout.read()
        if status not in expected:
            stderr.seek(0)
            said = (stderr.read() + output).decode(errors="replace").strip()[-3000:]
            raise click.ClickException(f"{' '.join(command[:6])} ended with status {status}; it said: {said}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ran(output, status, began, seconds, used)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a program whose run is interrupted."""
    process.terminate()
    try:
        process.wait(timeout=ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def chaosckpt(*arguments: str) -> list[str]:
    """The command line of chaosckpt, run by this interpreter."""
    return [sys.executable, "-c", "from chaosckpt.cli.main import main; main()", *arguments]
