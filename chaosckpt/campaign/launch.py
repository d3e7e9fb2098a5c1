"""Launching a campaign: the coordinator runs as a process of its own, and this one shows its progress.

The command line imports no Ray. The coordinator's output goes to `coordinator.log`; its progress and its result come over a pipe, one
JSON line each. It ends when this process does, however that ends: its standard input is a pipe that nobody writes to.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import msgspec

from chaosckpt.campaign import logs
from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.errors import HarnessError, UsageError
from chaosckpt.model.summary import CampaignSummary, Progress

LOG_FILE = "coordinator.log"
RESTARTS = 2
OWN_FAULT = 70
"""The coordinator's exit status for an exception that nobody expected (EX_SOFTWARE): another try would end in the same way."""
TAIL_LINES = 12


class CoordinatorMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line from the coordinator: progress, a log entry, the result, or why there is none (`usage`: the user's mistake)."""

    progress: Progress | None = None
    summary: CampaignSummary | None = None
    log: dict[str, str] = {}
    error: str = ""
    usage: bool = False


def fuzz(options: FuzzOptions, progress: Callable[[Progress], None]) -> CampaignSummary:
    """Run a campaign to its end; Ctrl-C ends it early with what it has.

    A coordinator that dies (killed, out of memory) is restarted, a few times, and continues where it was. Raises UsageError for what
    the coordinator refuses, HarnessError when it can't continue.
    """
    for restart in range(RESTARTS + 1):
        last, status = _coordinate(options, progress, resume=restart > 0)
        if last is not None and last.summary is not None:
            return last.summary
        if last is not None and last.error:
            raise (UsageError if last.usage else HarnessError)(last.error)
        log = options.run_directory / LOG_FILE
        if status == OWN_FAULT:
            raise HarnessError(
                f"this is a fault of chaosckpt: the coordinator of the campaign failed; please report the end of {log}\n{_tail(log)}"
            )
        progress(
            Progress(phase="prepare", message=f"the coordinator ended with status {status} and is being restarted")
        )
    raise HarnessError(
        f"the coordinator of the campaign died {RESTARTS + 1} times (last status {status}); see the end of "
        f"{options.run_directory / LOG_FILE}, then continue with: chaosckpt fuzz --resume {options.run_directory}\n"
        f"{_tail(options.run_directory / LOG_FILE)}"
    )


def _coordinate(
    options: FuzzOptions, progress: Callable[[Progress], None], resume: bool
) -> tuple[CoordinatorMessage | None, int]:
    """Run the coordinator once: its last message, if there was one, and its exit status."""
    read, write = os.pipe()
    command = [sys.executable, "-P", "-m", "chaosckpt.campaign.coordinator", options.run, str(write)]
    if resume or options.resume:
        command.append("--resume")
    with open(options.run_directory / LOG_FILE, "ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=[write], start_new_session=True
        )
    os.close(write)
    last: CoordinatorMessage | None = None
    with passing_interrupts(process) as interrupts:
        with os.fdopen(read, "rb") as lines:
            for line in lines:
                message = msgspec.json.decode(line, type=CoordinatorMessage)
                if message.progress is not None:
                    progress(message.progress)
                elif message.log:
                    logs.repeat(message.log)
                else:
                    last = message
        status = _end(process)
    if interrupts and last is None:
        raise KeyboardInterrupt
    return last, status


@contextmanager
def passing_interrupts(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Pass Ctrl-C to the coordinator, which stores what it has and ends. Yields the interrupts so far."""
    interrupts: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        process.send_signal(signal.SIGINT)

    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> int:
    """Wait for the coordinator after its last message, and kill it if it hangs."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        return process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _tail(path: Path) -> str:
    try:
        lines = path.read_text(errors="replace").strip().splitlines()
    except OSError:
        return "(the log can't be read)"
    return "\n".join(lines[-TAIL_LINES:])
