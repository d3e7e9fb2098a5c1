"""Tests of signals that interrupt notified calls: nothing is performed twice, on new kernels and on old ones."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from chaosckpt.gate import HeldCall, Root
from chaosckpt.model.fault import Decision, Hold
from chaosckpt.model.operation import Operation
from tests.gate.driver import Supervised, launch, run, serve


def test_a_flood_of_signals_repeats_nothing(tmp_path: Path) -> None:
    """300 rounds of open, write, close, rename under a fast timer give exactly their operations and bytes."""
    rounds = 300

    def program() -> None:
        ticks = []
        signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
        signal.siginterrupt(signal.SIGALRM, False)
        signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0002)
        file = os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT)
        for number in range(rounds):
            os.write(file, b"%03d\n" % number)
            other = os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT)
            os.write(other, b"x")
            os.close(other)
            os.rename(tmp_path / "other", tmp_path / "renamed")
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert ticks

    tree = run(program, roots=[Root("t", str(tmp_path))])
    assert tree.status == 0
    assert (tmp_path / "f").read_bytes() == b"".join(b"%03d\n" % number for number in range(rounds))
    counts = [len(tree.named(op)) for op in ("open_write", "write", "close", "rename")]
    assert counts == [rounds + 1, 2 * rounds, rounds + 1, rounds]


@pytest.mark.parametrize("restart", [True, False])
def test_old_kernels_restart_calls_that_were_performed(tmp_path: Path, *, restart: bool) -> None:
    """Each call is interrupted after it was performed and before its answer: 10 writes still give 10 operations.

    With `restart` the kernel makes the call again, without it Python does (an open or write) or the program.
    """
    reader, writer = os.pipe2(os.O_NONBLOCK)
    os.set_blocking(reader, True)

    def close(number: int) -> None:
        try:
            os.close(number)
        except InterruptedError:
            os.close(number)

    def program() -> None:
        signal.signal(signal.SIGUSR1, lambda *_: None)
        signal.siginterrupt(signal.SIGUSR1, not restart)
        signal.set_wakeup_fd(writer)  # Written to at once, however long Python itself defers the handler.
        file = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
        for number in range(10):
            assert os.write(file, b"%d" % number) == 1
        assert os.pread(file, 100, 0) == b"0123456789"
        close(os.dup(file))
        close(file)
        if restart:
            os.mkdir(tmp_path / "d")
            os.rename(tmp_path / "f", tmp_path / "d/g")

    def interrupt(_: Operation) -> None:
        os.kill(tree.pid, signal.SIGUSR1)
        os.read(reader, 1)

    tree = launch(program, roots=[Root("t", str(tmp_path))], wait_killable=False, after=interrupt)
    serve(tree)
    os.close(reader)
    os.close(writer)
    assert tree.status == 0
    expected = ["open_write", *["write"] * 10, "read", *(["mkdir", "rename"] if restart else [])]
    assert [it.address.op for it in tree.observed if it.address.op != "close"] == expected
    assert (tmp_path / ("d/g" if restart else "f")).read_bytes() == b"0123456789"


@pytest.mark.parametrize("wait_killable", [True, False])
def test_a_signal_while_held(tmp_path: Path, *, wait_killable: bool) -> None:
    """A held call that is interrupted stays held through its restart, and is performed once when resumed."""
    reader, writer = os.pipe()

    def program() -> None:
        signal.signal(signal.SIGUSR1, lambda *_: os.write(writer, b"!"))
        signal.siginterrupt(signal.SIGUSR1, True)
        with open(tmp_path / "f", "wb", buffering=0) as file:
            file.write(b"once")

    def decide(it: Operation) -> Decision:
        return Hold() if it.address.op == "write" else None

    def when_held(tree: Supervised, held: HeldCall) -> None:
        os.kill(tree.pid, signal.SIGUSR1)
        if wait_killable:
            tree.gate.resume(held)
            return

        def later() -> None:
            os.read(reader, 1)  # The handler has run, so that the call is, or will be, made again.
            os.write(wake, b"!")

        thread = threading.Thread(target=later)
        thread.start()
        threads.append(thread)

    threads: list[threading.Thread] = []
    woken, wake = os.pipe()
    tree = launch(program, roots=[Root("t", str(tmp_path))], decide=decide, wait_killable=wait_killable)
    if wait_killable:
        serve(tree, when_held=when_held)
    else:
        serve(tree, when_held=when_held, also=(woken, lambda: tree.gate.resume(tree.gate.holds[0])))
    for thread in threads:
        thread.join()
    for number in (reader, writer, woken, wake):
        os.close(number)
    assert tree.status == 0
    assert (tmp_path / "f").read_bytes() == b"once"
    assert len(tree.named("write")) == 1


def test_a_stopped_program_goes_on(tmp_path: Path) -> None:
    """SIGSTOP and SIGCONT around a held call change nothing."""

    def decide(it: Operation) -> Decision:
        return Hold("torn", 2) if it.address.op == "write" else None

    def when_held(tree: Supervised, held: HeldCall) -> None:
        os.kill(tree.pid, signal.SIGSTOP)
        tree.gate.resume(held)
        os.kill(tree.pid, signal.SIGCONT)

    tree = run(
        lambda: (tmp_path / "f").write_bytes(b"once"),
        roots=[Root("t", str(tmp_path))],
        decide=decide,
        when_held=when_held,
    )
    assert tree.status == 0
    assert (tmp_path / "f").read_bytes() == b"once"
