"""Tests of calls that change names."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import stat
import subprocess
from pathlib import Path

from chaosckpt.gate import Root
from chaosckpt.gate.replay import replay
from tests.gate.driver import Supervised, fails, run, snapshot

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100


def traced(tmp_path: Path, program: object) -> Supervised:
    """Run `program(store)` and check that its replay is the disk."""
    store, again = tmp_path / "store", tmp_path / "again"
    store.mkdir()
    again.mkdir()
    tree = run(lambda: program(store), roots=[Root("t", str(store))])  # type: ignore[operator]
    assert tree.status == 0
    replay(tree.observed, {"t": again})
    assert snapshot(again) == snapshot(store)
    return tree


def test_renames_with_flags(tmp_path: Path) -> None:
    """NOREPLACE fails with EEXIST, EXCHANGE swaps, also whole directories with what is open below them."""

    def program(store: Path) -> None:
        for name in ("one", "two"):
            (store / name).mkdir()
            (store / name / "file").write_bytes(name.encode())
        fd = os.open(store / "one/file", os.O_WRONLY | os.O_APPEND)
        one, two = os.fsencode(store / "one"), os.fsencode(store / "two")
        assert LIBC.renameat2(AT_FDCWD, one, AT_FDCWD, two, 1) == -1
        assert ctypes.get_errno() == 17
        assert LIBC.renameat2(AT_FDCWD, one, AT_FDCWD, two, 2) == 0
        os.write(fd, b"+")
        assert (store / "two/file").read_bytes() == b"one+"
        os.rename(store / "two", store / "three")
        os.write(fd, b"+")
        assert LIBC.renameat2(AT_FDCWD, one, AT_FDCWD, os.fsencode(store / "four"), 1) == 0

    tree = traced(tmp_path, program)
    assert [(it.raw, it.destination, it.flags, it.result) for it in tree.named("rename")] == [
        ("t:one", "t:two", 1, -17),
        ("t:one", "t:two", 2, 0),
        ("t:two", "t:three", 0, 0),
        ("t:one", "t:four", 1, 0),
    ]
    assert [it.raw for it in tree.named("write")][2:] == ["t:two/file", "t:three/file"]


def test_what_holds_no_data_comes_and_goes_unnoticed(tmp_path: Path) -> None:
    """A socket's name appears by bind, which is no operation on storage: neither is its removal, which nothing could replay."""

    def program(store: Path) -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(store / "listener"))
        os.mkfifo(store / "pipe")
        (store / "file").write_text("data")
        for name in ("listener", "pipe", "file"):
            os.unlink(store / name)

    tree = traced(tmp_path, program)
    assert [it.raw for it in tree.named("unlink")] == ["t:file"]


def test_links_by_descriptor(tmp_path: Path) -> None:
    """O_TMPFILE gets its name through /proc/self/fd, or through AT_EMPTY_PATH where the process may."""

    def program(store: Path) -> None:
        fd = os.open(store, os.O_TMPFILE | os.O_WRONLY, 0o600)
        os.write(fd, b"unnamed")
        assert LIBC.linkat(-100, b"/proc/self/fd/%d" % fd, -100, os.fsencode(store / "named"), 0x400) == 0
        os.write(fd, b" no more")
        os.link(store / "named", store / "twin")
        os.symlink("named", store / "soft")
        os.link(store / "soft", store / "soft-twin", follow_symlinks=False)
        LIBC.linkat(fd, b"", AT_FDCWD, os.fsencode(store / "empty"), 0x1000)

    tree = traced(tmp_path, program)
    assert [it.destination for it in tree.named("link")][:3] == ["t:named", "t:twin", "t:soft-twin"]
    assert tree.named("write")[1].raw == "t:named"


def test_a_tree_is_deleted_through_its_descriptors(tmp_path: Path) -> None:
    """shutil.rmtree and rm -r work by directory descriptors; every removal has its full path."""

    def program(store: Path) -> None:
        for base in ("x", "y"):
            os.makedirs(store / base / "deep/er")
            (store / base / "deep/er/file").write_bytes(b"1")
            (store / base / "deep/file").write_bytes(b"2")
        shutil.rmtree(store / "x")
        subprocess.run(["rm", "-r", store / "y"], check=True)

    tree = traced(tmp_path, program)
    for base in ("x", "y"):
        removed = [op for op in tree.ops if op.startswith(("unlink", "rmdir")) and f"t:{base}" in op]
        assert sorted(removed) == sorted(
            f"{op} t:{base}{rest}"
            for op, rest in (
                ("unlink", "/deep/er/file"),
                ("unlink", "/deep/file"),
                ("rmdir", "/deep/er"),
                ("rmdir", "/deep"),
                ("rmdir", ""),
            )
        )


def test_modes_obey_the_umask(tmp_path: Path) -> None:
    """Of files, directories and unnamed files; and chmod by path, by descriptor, relative to a directory."""

    def program(store: Path) -> None:
        os.umask(0o027)
        os.mkdir(store / "d", 0o777)
        os.close(os.open(store / "f", os.O_CREAT | os.O_WRONLY, 0o666))
        os.umask(0)
        os.mkdir(store / "wide", 0o777)
        os.close(os.open(store / "g", os.O_CREAT | os.O_WRONLY, 0o666))
        assert stat.S_IMODE(os.stat(store / "d").st_mode) == 0o750
        assert stat.S_IMODE(os.stat(store / "f").st_mode) == 0o640
        assert stat.S_IMODE(os.stat(store / "wide").st_mode) == 0o777
        os.chmod(store / "f", 0o600)
        directory = os.open(store, os.O_RDONLY)
        os.chmod("g", 0o4755, dir_fd=directory)
        os.mknod(store / "node", 0o644 | stat.S_IFREG)

    tree = traced(tmp_path, program)
    assert [it.mode for it in tree.named("chmod")] == [0o600, 0o4755]


def test_what_crosses_the_border_of_a_root(tmp_path: Path) -> None:
    """A file moved or linked in comes with its content, a directory moved in is said to be untraced; moving out removes."""
    (tmp_path / "outside").mkdir()

    def program(store: Path) -> None:
        outside = store.parent / "outside"
        (outside / "made").write_bytes(b"elsewhere")
        os.chmod(outside / "made", 0o600)
        os.rename(outside / "made", store / "moved")
        (outside / "other").write_bytes(b"linked")
        os.link(outside / "other", store / "linked")
        os.mkdir(store / "gone")
        (store / "gone/x").write_bytes(b"x")
        os.rename(store / "gone", outside / "gone")
        os.mkdir(outside / "empty")
        os.rename(outside / "empty", store / "empty")

    tree = traced(tmp_path, program)
    moved = tree.named("rename")[0]
    assert (moved.address.path, moved.raw, moved.destination) == ("t:moved", f"{tmp_path}/outside/made", "t:moved")
    assert moved.data == b"elsewhere"
    assert tree.named("rename")[1].destination == f"{tmp_path}/outside/gone"
    assert any("moved in from outside" in sentence for sentence in tree.gate.untraced)


def test_a_failing_program_fails_alike(tmp_path: Path) -> None:
    """Python's own file handling meets the same errors as without a gate."""

    def program(store: Path) -> None:
        (store / "d").mkdir()
        (store / "d/f").write_bytes(b"")
        for call, number in (
            (lambda: os.rmdir(store / "d"), 39),
            (lambda: os.unlink(store / "d"), 21),
            (lambda: os.mkdir(store / "d"), 17),
            (lambda: os.rename(store / "d", store / "d/in"), 22),
            (lambda: os.rename(store / "none", store / "x"), 2),
            (lambda: os.link(store / "d", store / "x"), 1),
            (lambda: os.symlink("x", store / "d"), 17),
            (lambda: os.truncate(store / "d", 0), 21),
            (lambda: os.truncate(store / "d/f", -1), 22),
        ):
            fails(number, call)

    traced(tmp_path, program)
