"""Tests of decisions: hold before, after and torn, errno, short, resume; with what is on disk at each."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from chaosckpt.gate import HeldCall, Root
from chaosckpt.model.fault import Decision, Errno, Hold, Short
from chaosckpt.model.operation import Operation
from tests.gate.driver import Supervised, fails, launch, run, serve

DATA = bytes(range(256)) * 16


def on(op: str, decision: Decision, *, nth: int = 0, path: str = "t:f") -> Callable[[Operation], Decision]:
    """Decide one operation by its address."""

    def decide(it: Operation) -> Decision:
        address = it.address
        return decision if (address.op, address.nth, address.path) == (op, nth, path) else None

    return decide


def save(path: Path) -> None:
    """Write a temporary file, sync it, rename it."""
    with open(path / "f", "wb", buffering=0) as file:
        for start in range(0, len(DATA), 1024):
            file.write(DATA[start : start + 1024])
        os.fsync(file.fileno())
    os.rename(path / "f", path / "g")


def killed(tmp_path: Path, op: str, hold: Hold, **which: object) -> Supervised:
    tree = run(lambda: save(tmp_path), roots=[Root("t", str(tmp_path))], decide=on(op, hold, **which))  # type: ignore[arg-type]
    assert tree.status == signal.SIGKILL
    assert [it.address for it in tree.decided if it.result is not None] == []
    return tree


@pytest.mark.parametrize("nth", [0, 2, 3])
def test_kill_at_a_write_leaves_exactly_the_prefix(tmp_path: Path, nth: int) -> None:
    """Before: nothing of it; torn: its first k bytes; after: all of it."""
    for hold, extra in (
        (Hold("before"), 0),
        (Hold("torn", 1), 1),
        (Hold("torn", 1000), 1000),
        (Hold("torn", 0), 0),
        (Hold("torn", 99999), 1024),
        (Hold("after"), 1024),
    ):
        tree = killed(tmp_path, "write", hold, nth=nth)
        assert (tmp_path / "f").read_bytes() == DATA[: nth * 1024 + extra]
        assert sum(len(it.data or b"") for it in tree.named("write")) == nth * 1024 + extra


def test_kill_at_other_operations(tmp_path: Path) -> None:
    """A rename, open or close is done or not done, never half: torn counts as before."""
    killed(tmp_path, "open_write", Hold("before"))
    assert os.listdir(tmp_path) == []
    killed(tmp_path, "open_write", Hold("torn", 5))
    assert os.listdir(tmp_path) == []
    killed(tmp_path, "open_write", Hold("after"))
    assert os.listdir(tmp_path) == ["f"]
    killed(tmp_path, "rename", Hold("before"))
    assert os.listdir(tmp_path) == ["f"]
    killed(tmp_path, "close", Hold("after"))
    assert os.listdir(tmp_path) == ["f"]
    tree = killed(tmp_path, "rename", Hold("after"))
    assert os.listdir(tmp_path) == ["g"]
    assert tree.ops[-1] == "rename t:f"
    assert tree.observed[-1].result == 0


def test_a_held_thread_is_known_while_others_go_on(tmp_path: Path) -> None:
    """A hold stops one thread; resume performs the rest, and the program never notices."""
    import threading

    def program() -> None:
        thread = threading.Thread(target=save, args=(tmp_path,))
        thread.start()
        while not (tmp_path / "f").exists():
            pass
        os.mkdir(tmp_path / "other")
        thread.join()

    told: list[tuple[str, int]] = []
    kept: list[HeldCall] = []

    def decide(it: Operation) -> Decision:
        if it.address.op == "write" and it.address.nth == 1:
            return Hold("torn", 10)
        return Hold() if it.address.op == "mkdir" else None

    def when_held(tree: Supervised, held: HeldCall) -> None:
        told.append((held.when, os.stat(tmp_path / "f").st_size))
        kept.append(held)
        assert held.tid in tree.gate.held_threads()
        assert held.pid == tree.pid
        if len(kept) == 2:
            assert tree.gate.held_threads() == {one.tid for one in kept}
            for one in kept:
                tree.gate.resume(one)
                tree.gate.resume(one)  # A second time changes nothing.
            assert tree.gate.held_threads() == set()

    tree = run(program, roots=[Root("t", str(tmp_path))], decide=decide, when_held=when_held)
    assert tree.status == 0
    assert (tmp_path / "g").read_bytes() == DATA
    assert (tmp_path / "other").is_dir()
    assert ("torn", 1034) in told
    parts = [it for it in tree.named("write") if it.address.nth == 1]
    assert [(it.part, it.offset, it.result) for it in parts] == [(0, 1024, 10), (1, 1034, 1014)]
    assert {it.address.role for it in parts} == {"thread"}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "op", ["open_write", "write", "fsync", "close", "rename", "mkdir", "unlink", "read", "stat", "list"]
)
def test_any_operation_can_be_held_and_resumed(tmp_path: Path, op: str, when: str) -> None:
    """Hold and resume is latency: the program ends as if nothing had been."""

    def program() -> None:
        os.mkdir(tmp_path / "d")
        save(tmp_path)
        assert (tmp_path / "g").read_bytes() == DATA
        assert os.stat(tmp_path / "g").st_size == len(DATA)
        assert sorted(os.listdir(tmp_path)) == ["d", "g"]
        os.unlink(tmp_path / "g")

    first = True

    def decide(it: Operation) -> Decision:
        nonlocal first
        if it.address.op == op and first:
            first = False
            return Hold("before" if when == "before" else "after")
        return None

    held: list[str] = []

    def when_held(tree: Supervised, it: HeldCall) -> None:
        held.append(it.operation.address.op)
        tree.gate.resume(it)

    tree = run(program, roots=[Root("t", str(tmp_path))], decide=decide, when_held=when_held)
    assert tree.status == 0
    assert held == [op]
    assert os.listdir(tmp_path) == ["d"]
    assert len(tree.observed) == len(tree.decided)


@pytest.mark.parametrize(
    "op",
    [
        "open_write",
        "write",
        "fsync",
        "close",
        "rename",
        "mkdir",
        "unlink",
        "open_read",
        "read",
        "stat",
        "list",
        "access",
    ],
)
def test_an_injected_error_reaches_the_program(tmp_path: Path, op: str) -> None:
    """Nothing is performed, the observer learns the error, and a failed close has closed."""

    def program() -> None:
        (tmp_path / "keep").touch()
        for call in (
            lambda: os.mkdir(tmp_path / "d"),
            lambda: save(tmp_path),
            lambda: (tmp_path / "g").read_bytes(),
            lambda: os.stat(tmp_path / "g"),
            lambda: os.listdir(tmp_path),
            lambda: os.access(tmp_path / "g", os.R_OK) or (_ for _ in ()).throw(OSError(28, "access")),
            lambda: os.unlink(tmp_path / "g"),
        ):
            try:
                call()
            except OSError as error:
                failures.append(error.errno)
        os._exit(0 if failures[:1] == [28] else 1)

    failures: list[int | None] = []
    hit = False

    def decide(it: Operation) -> Decision:
        nonlocal hit
        if it.address.op == op and it.raw != "t:keep" and not hit:
            hit = True
            return Errno(28)
        return None

    tree = run(program, roots=[Root("t", str(tmp_path))], decide=decide)
    assert tree.status == 0
    assert [it.address.op for it in tree.observed if it.result == -28] == [op]


def test_a_failed_close_gives_up_the_descriptor_and_its_lock(tmp_path: Path) -> None:
    """EIO from close: the number is not the file any more, and a lock on it is gone."""
    import fcntl

    def program() -> None:
        fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
        fcntl.flock(fd, fcntl.LOCK_EX)
        fails(5, os.close, fd)
        assert not os.path.samestat(os.fstat(fd), os.stat(tmp_path / "f"))
        fcntl.flock(os.open(tmp_path / "f", os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)

    assert run(program, roots=[Root("t", str(tmp_path))], decide=on("close", Errno(5))).status == 0


@pytest.mark.parametrize("length", [0, 1, 1000])
def test_a_short_write(tmp_path: Path, length: int) -> None:
    """The program is told how much was written, and may go on from there."""

    def program() -> None:
        fd = os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT)
        assert os.write(fd, DATA) == length
        assert os.write(fd, DATA[length:]) == len(DATA) - length

    tree = run(program, roots=[Root("t", str(tmp_path))], decide=on("write", Short(length)))
    assert tree.status == 0
    assert (tmp_path / "f").read_bytes() == DATA
    assert [it.result for it in tree.named("write")] == [length, len(DATA) - length]


def test_a_death_while_asked_is_no_error(tmp_path: Path) -> None:
    """The target may die at any moment, also inside `decide`: nothing is raised, and nothing more is done for it."""

    def decide(it: Operation) -> Decision:
        if it.address.op == "fsync":
            os.kill(pid[0], signal.SIGKILL)
            os.waitid(os.P_PID, pid[0], os.WEXITED | os.WNOWAIT)
            return Hold("after")
        return None

    pid: list[int] = []

    def program() -> None:
        save(tmp_path)

    tree = launch(program, roots=[Root("t", str(tmp_path))], decide=decide)
    pid.append(tree.pid)
    serve(tree, when_held=lambda tree, held: tree.gate.resume(held))
    assert tree.status == signal.SIGKILL
    assert sorted(os.listdir(tmp_path)) == ["f"]


def test_what_a_held_open_has_opened_outlives_another_process(tmp_path: Path) -> None:
    """Goal: a child that dies while its parent is held behind an open takes nothing away: the parent gets the very file."""
    (tmp_path / "f").write_bytes(DATA)
    ready, tell = os.pipe()

    def program() -> None:
        child = os.fork()
        if not child:
            os.write(tell, f"{os.getpid()}".encode())
            (tmp_path / "beside").mkdir()
            signal.pause()
        while not (tmp_path / "beside").exists():
            continue
        assert (tmp_path / "f").read_bytes() == DATA
        os.waitpid(child, 0)

    def on_hold(tree: Supervised, held: HeldCall) -> None:
        os.kill(int(os.read(ready, 20)), signal.SIGKILL)
        assert select.select([tree.gate.fileno()], [], [], 20)[0]
        tree.gate.serve()  # It learns of the death, the only thing that can happen now.
        tree.gate.resume(held)

    tree = run(program, roots=[Root("t", str(tmp_path))], decide=on("open_read", Hold("after")), when_held=on_hold)
    for number in (ready, tell):
        os.close(number)
    assert tree.status == 0
