"""Tests of descriptors: duplicates, tables across processes, and programs that use the band's numbers themselves."""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from chaosckpt.gate import Root
from chaosckpt.gate.install import choose_band
from tests.gate.driver import Supervised, launch, run, serve

BASE, LIMIT = choose_band(4096)
LIBC = ctypes.CDLL(None, use_errno=True)


def traced(tmp_path: Path, program: object, **options: object) -> Supervised:
    tree = run(program, roots=[Root("t", str(tmp_path))], limit=4096, **options)  # type: ignore[arg-type]
    assert tree.status == 0
    return tree


def test_duplicates_stay_tracked_and_share_the_position(tmp_path: Path) -> None:
    """dup, dup2 and dup3 into the band, F_DUPFD: one file, closed when the last of them is."""

    def program() -> None:
        first = os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT)
        others = [
            os.dup(first),
            fcntl.fcntl(first, fcntl.F_DUPFD, 0),
            fcntl.fcntl(first, fcntl.F_DUPFD_CLOEXEC, LIMIT - 10),
        ]
        others += [os.dup2(first, LIMIT - 2), os.dup2(first, LIMIT - 1, inheritable=False)]
        assert len({first, *others}) == 6
        assert others[2] >= LIMIT - 10
        assert not os.get_inheritable(others[2])
        assert os.get_inheritable(others[3])
        for number in (first, *others):
            os.write(number, b"x")
            os.close(number)

    tree = traced(tmp_path, program)
    assert tree.ops == ["open_write t:f"] + ["write t:f"] * 6 + ["close t:f"]
    assert [it.offset for it in tree.named("write")] == list(range(6))


def test_a_low_duplicate_works_and_is_said(tmp_path: Path) -> None:
    """A redirection to a low number is performed; the trace says what it can't see."""

    def program() -> None:
        fd = os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT)
        os.dup2(fd, 30)
        os.close(fd)
        os.write(30, b"unseen")

    tree = traced(tmp_path, program)
    assert (tmp_path / "f").read_bytes() == b"unseen"
    assert tree.ops == ["open_write t:f", "close t:f"]
    assert tree.gate.untraced == ["t:f was duplicated to descriptor 30; what is written there is not traced"]


def test_shell_redirections_are_traced_on_request(tmp_path: Path) -> None:
    """With low descriptors every write of a script is an operation with its data."""

    def program() -> None:
        script = (
            "echo one > f; echo two >> f; { echo three; echo four; } > g; cat f g > h; exec 5> i; echo five >&5; ls > j"
        )
        subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True)

    tree = traced(tmp_path, program, low_descriptors=True)
    assert tree.gate.untraced == []
    for name in "fghij":
        data = b"".join(it.data or b"" for it in tree.named("write") if it.raw == f"t:{name}")
        assert data == (tmp_path / name).read_bytes(), name
        assert data


def test_a_program_may_use_the_numbers_of_the_band(tmp_path: Path) -> None:
    """Files of its own at those numbers keep working, and tracked files are put elsewhere."""

    def program() -> None:
        reader, writer = os.pipe()
        for step in range(8):
            os.dup2(writer, BASE + step)
        assert fcntl.fcntl(writer, fcntl.F_DUPFD, BASE + 20) >= BASE + 20
        fd = os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT)
        assert fd >= BASE + 8
        for step in range(8):
            os.write(BASE + step, b"p")
        assert os.read(reader, 100) == b"p" * 8
        os.write(fd, b"f")
        assert os.dup2(writer, fd) == fd  # Closes the tracked file.
        os.write(fd, b"p")
        assert os.read(reader, 100) == b"p"
        os.close(fd)
        again = os.open(tmp_path / "g", os.O_WRONLY | os.O_CREAT)
        os.dup2(again, BASE)
        os.write(BASE, b"g")
        assert (tmp_path / "g").read_bytes() == b"g"

    tree = traced(tmp_path, program)
    assert [(it.raw, it.data) for it in tree.named("write")] == [("t:f", b"f"), ("t:g", b"g")]
    assert "close t:f" in tree.ops


def test_numbers_taken_before_the_gate(tmp_path: Path) -> None:
    """A descriptor that was open at a number of the band when the filter came is left alone."""
    base = choose_band(4096)[0]
    reader, writer = os.pipe()
    os.dup2(writer, base)
    try:

        def program() -> None:
            fds = [os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT) for _ in range(3)]
            assert base not in fds
            os.write(base, b"mine")
            assert os.read(reader, 10) == b"mine"

        tree = traced(tmp_path, program)
        assert not tree.named("write")
    finally:
        for number in (reader, writer, base):
            os.close(number)


def test_a_private_meaning_of_a_number(tmp_path: Path) -> None:
    """Parent and child may mean different files by one number, once a dup2 made it so."""

    def program() -> None:
        number = os.open(tmp_path / "parent", os.O_WRONLY | os.O_CREAT)
        ready, go = os.pipe()
        if not (pid := os.fork()):
            other = os.open(tmp_path / "child", os.O_WRONLY | os.O_CREAT)
            os.dup2(other, number)
            os.close(other)
            os.write(go, b"!")
            os.write(number, b"child")
            os._exit(0)
        os.read(ready, 1)
        os.write(number, b"parent")
        os.waitpid(pid, 0)

    tree = traced(tmp_path, program)
    assert {(it.raw, it.data) for it in tree.named("write")} == {("t:parent", b"parent"), ("t:child", b"child")}
    assert (tmp_path / "parent").read_bytes() == b"parent"
    assert (tmp_path / "child").read_bytes() == b"child"


def test_close_is_an_operation_when_the_last_process_closes(tmp_path: Path) -> None:
    """A child's close of what it inherited is none; the parent's is, and so is the end of a child that held on longer."""

    def program() -> None:
        first = os.open(tmp_path / "first", os.O_WRONLY | os.O_CREAT)
        second = os.open(tmp_path / "second", os.O_WRONLY | os.O_CREAT)
        ready, go = os.pipe()
        if not (pid := os.fork()):
            os.close(first)
            os.read(ready, 1)
            os._exit(0)
        os.close(second)
        os.mkdir(tmp_path / "between")
        os.write(go, b"!")
        os.waitpid(pid, 0)
        os.mkdir(tmp_path / "after")
        os.close(first)

    tree = traced(tmp_path, program)
    assert tree.ops[2:] == ["mkdir t:between", "close t:second", "mkdir t:after", "close t:first"]
    assert [it.address.role for it in tree.named("close")] == ["child", "main"]


def test_exec_closes_what_is_marked_so(tmp_path: Path) -> None:
    """A program that replaces itself loses close-on-exec files, which are closed, and keeps the others."""

    def program() -> None:
        os.open(tmp_path / "goes", os.O_WRONLY | os.O_CREAT)
        stays = os.open(tmp_path / "stays", os.O_WRONLY | os.O_CREAT)
        os.set_inheritable(stays, True)
        code = f"import os; os.mkdir('{tmp_path}/new'); os.write({stays}, b'later')"
        try:
            os.execv("/nonexistent", ["none"])
        except OSError:
            os.mkdir(tmp_path / "failed")
        os.execv(sys.executable, [sys.executable, "-S", "-c", code])

    tree = traced(tmp_path, program)
    changes = [op for op in tree.ops if not op.startswith(("stat", "open_read", "access", "readlink", "list"))]
    assert [op for op in changes if "t:goes" in op] == ["open_write t:goes", "close t:goes"]
    assert changes.index("mkdir t:failed") < changes.index("close t:goes") < changes.index("mkdir t:new")
    assert changes[-2:] == ["write t:stays", "close t:stays"]


def test_subprocesses_that_close_everything(tmp_path: Path) -> None:
    """close_fds=True, vfork and posix_spawn in the middle of a write: the parent's file stays open and tracked."""

    def program() -> None:
        with open(tmp_path / "f", "wb", buffering=0) as file:
            file.write(b"1")
            subprocess.run(["true"], close_fds=True, check=True)
            subprocess.run(["true"], close_fds=False, check=True)
            os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
            file.write(b"2")
        (tmp_path / "end").mkdir()

    tree = traced(tmp_path, program)
    changes = [op for op in tree.ops if op.split()[0] in ("open_write", "write", "close", "mkdir")]
    assert changes == ["open_write t:f", "write t:f", "write t:f", "close t:f", "mkdir t:end"]


def test_close_range(tmp_path: Path) -> None:
    """os.closerange over everything closes each tracked file, in order; CLOSE_RANGE_CLOEXEC closes nothing."""

    def program() -> None:
        numbers = [os.open(tmp_path / name, os.O_WRONLY | os.O_CREAT) for name in "abc"]
        assert LIBC.syscall(436, numbers[0], 0xFFFFFFFF, 4) == 0
        os.write(numbers[1], b"x")
        os.closerange(numbers[1], LIMIT)
        os.mkdir(tmp_path / "end")
        os.write(numbers[0], b"y")

    tree = traced(tmp_path, program)
    assert tree.ops[3:] == ["write t:b", "close t:b", "close t:c", "mkdir t:end", "write t:a", "close t:a"]


def test_locks_go_with_the_file(tmp_path: Path) -> None:
    """flock is released as soon as the program has closed the file, though the supervisor had a copy."""
    (tmp_path / "lock").touch()
    other = os.open(tmp_path / "lock", os.O_RDWR)
    ours, theirs = socket.socketpair()

    def program() -> None:
        with open(tmp_path / "lock", "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            child = subprocess.Popen(["sleep", "30"])
            theirs.send(b"locked")
        theirs.send(b"closed")
        theirs.recv(1)
        child.kill()
        child.wait()
        if not (pid := os.fork()):
            fcntl.flock(os.open(tmp_path / "lock", os.O_RDWR), fcntl.LOCK_EX)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        theirs.send(b"killed")
        theirs.recv(1)

    def watch() -> None:
        for expected in (b"locked", b"closed", b"killed"):
            told = ours.recv(6)
            assert told == expected
            if told != b"locked":
                fcntl.flock(
                    other, fcntl.LOCK_EX
                )  # Waits for the release, however late the supervisor hears of a death.
                fcntl.flock(other, fcntl.LOCK_UN)
                ours.send(b"g")
                seen.append(told)

    seen: list[bytes] = []
    watcher = threading.Thread(target=watch)
    tree = launch(program, roots=[Root("t", str(tmp_path))])
    watcher.start()
    serve(tree)
    watcher.join()
    assert tree.status == 0
    assert seen == [b"closed", b"killed"]
    for it in (ours, theirs):
        it.close()
    os.close(other)


def test_nothing_leaks(tmp_path: Path) -> None:
    """After 50 trees that ended, were killed, or were killed while held, the supervisor has as many descriptors as before."""
    from chaosckpt.model.fault import Hold

    def program() -> None:
        for name in "abc":
            os.open(tmp_path / name, os.O_WRONLY | os.O_CREAT)
        if not (pid := os.fork()):
            os.open(tmp_path / "d", os.O_WRONLY | os.O_CREAT)
            os._exit(0)
        os.waitpid(pid, 0)
        os.kill(os.getpid(), signal.SIGKILL)

    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for turn in range(50):
        decide = (lambda it: Hold() if it.raw == "t:d" else None) if turn % 2 else None
        run(
            program,
            roots=[Root("t", str(tmp_path))],
            decide=decide,
            when_held=lambda tree, held: _kill_both(tree, held.pid),
        )
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def _kill_both(tree: Supervised, pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    tree.kill()


def test_mappings_and_rings_are_said(tmp_path: Path) -> None:
    """A writable shared mapping and a ring for asynchronous input and output are named as untraced; rings are refused."""
    import mmap

    def program() -> None:
        with open(tmp_path / "f", "w+b") as file:
            file.write(b"x" * 4096)
            file.flush()
            with mmap.mmap(file.fileno(), 4096) as room:
                room[:2] = b"yy"
        assert LIBC.syscall(425, 4, None) == -1
        assert ctypes.get_errno() == 38

    tree = traced(tmp_path, program)
    assert [sentence.split(" ")[0] for sentence in tree.gate.untraced] == ["t:f", "a"]
    assert (tmp_path / "f").read_bytes()[:3] == b"yyx"
