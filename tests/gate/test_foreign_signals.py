"""Signals of a job: its own processes get them, no others do, and what was refused is told."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chaosckpt.gate import Root
from chaosckpt.gate import syscalls as k
from chaosckpt.gate.fence.guard import Guard
from tests.gate.driver import launch, serve

FOREIGN = "which is no process of the job's"


def told_of(program: Callable[[], object], tmp_path: Path) -> list[str]:
    """What the guard refused to a program that leads a session of its own, as ranks do; it must end well."""

    def led() -> None:
        os.setsid()
        program()

    guard = Guard([str(tmp_path)])
    tree = launch(led, roots=[Root("t", str(tmp_path))], guard=guard)
    serve(tree)
    assert tree.status == 0
    return guard.refused


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(PermissionError):
        call()


@pytest.fixture
def other():
    """A process of the user's that is none of the job's."""
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield process
    assert process.poll() is None  # nothing that the job did reached it
    process.kill()
    process.wait()


def test_another_process_is_out_of_reach(tmp_path: Path, other: subprocess.Popen[bytes]) -> None:
    """Goal: whichever call names it, and a group as well, it gets no signal; a question whether it lives is answered."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(name: str, *arguments: int) -> None:
        if libc.syscall(k.NUMBERS[name], *arguments):
            raise OSError(ctypes.get_errno(), name)

    def program() -> None:
        pid = other.pid
        os.kill(pid, 0)
        refused(lambda: os.kill(pid, signal.SIGTERM))
        refused(lambda: os.killpg(pid, signal.SIGTERM))
        refused(lambda: call("tgkill", pid, pid, signal.SIGTERM))
        refused(lambda: call("tkill", pid, signal.SIGTERM))
        refused(lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGTERM))
        information = ctypes.create_string_buffer(128)
        refused(lambda: call("rt_sigqueueinfo", pid, signal.SIGTERM, ctypes.addressof(information)))

    assert told_of(program, tmp_path) == [f'SIGTERM to "sleep", {FOREIGN}']


def test_neither_the_parent_nor_every_process(tmp_path: Path) -> None:
    """Goal: a script that stops its parent would stop the harness; one that signals every process would hit all of the user's."""

    def program() -> None:
        refused(lambda: os.kill(os.getppid(), signal.SIGSTOP))
        refused(lambda: os.kill(-1, signal.SIGURG))

    found = told_of(program, tmp_path)
    assert found[0].startswith("SIGSTOP to ")
    assert found[1] == "SIGURG to every process"


def test_a_job_signals_its_own_processes(tmp_path: Path) -> None:
    """Goal: itself, its threads, its children, their sessions and what these have left behind: a launcher does nothing else."""

    def program() -> None:
        signal.signal(signal.SIGUSR1, lambda *_: None)
        signal.raise_signal(signal.SIGUSR1)
        os.kill(0, signal.SIGUSR1)
        child = subprocess.Popen(["sleep", "60"], start_new_session=True)
        os.killpg(child.pid, signal.SIGTERM)
        assert child.wait() == -signal.SIGTERM
        told, telling = os.pipe()
        if not os.fork():
            daemon = subprocess.Popen(["sleep", "60"])
            os.write(telling, str(daemon.pid).encode())
            os._exit(0)
        os.wait()
        os.kill(int(os.read(told, 32)), signal.SIGKILL)

    assert told_of(program, tmp_path) == []


def test_a_number_that_nobody_has(tmp_path: Path) -> None:
    """Goal: the kernel's own answer, and no word of a refusal."""

    def program() -> None:
        child = subprocess.Popen(["true"])
        child.wait()
        with pytest.raises(ProcessLookupError):
            os.kill(child.pid, signal.SIGTERM)
        time.sleep(0)

    assert told_of(program, tmp_path) == []
