"""Tests of path resolution: whatever way leads under a root, the operation names the same file."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from chaosckpt.gate import Root
from chaosckpt.model.file_names import text_of
from tests.gate.driver import fails, run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A root with a directory and a file, and a symbolic link to it from outside."""
    (tmp_path / "store/sub").mkdir(parents=True)
    (tmp_path / "store/sub/file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("store")
    (tmp_path / "store/inner").symlink_to("sub/file")
    return tmp_path / "store"


def opened(store: Path, path: str, *, cwd: str = ".", dirfd: str | None = None, flags: int = os.O_RDONLY) -> list[str]:
    """The operations of opening `path` in a child that works in `cwd`."""

    def program() -> None:
        os.chdir(store / cwd)
        directory = None if dirfd is None else os.open(dirfd, os.O_RDONLY | os.O_DIRECTORY)
        os.open(path, flags, dir_fd=directory)
        os._exit(0)

    return [op for op in run(program, roots=[Root("t", str(store))]).ops if op.startswith("open")]


@pytest.mark.parametrize(
    "path",
    [
        "sub/file",
        "sub//./file",
        "sub/../sub/file",
        "../store/sub/file",
        "../link/sub/file",
        "../link/inner",
        "inner",
        "/proc/self/cwd/sub/file",
        "/proc/thread-self/cwd/sub/file",
        "//proc/self/cwd/sub/file",
    ],
)
def test_every_way_to_a_file_is_one_address(store: Path, path: str) -> None:
    """Relative paths, dots, links outside and inside, and /proc lead to the canonical path."""
    assert opened(store, path) == ["open_read t:sub/file"]


def test_a_directory_descriptor_is_a_start(store: Path) -> None:
    """openat relative to a tracked or an untracked directory."""
    assert opened(store, "file", dirfd="sub") == ["open_read t:sub", "open_read t:sub/file"]
    assert opened(store, "store/sub/file", dirfd="..")[-1:] == ["open_read t:sub/file"]


def test_the_last_link_is_followed_only_where_the_call_does(store: Path) -> None:
    """lstat, unlink and O_NOFOLLOW see the link itself; a dangling link creates its target."""

    def program() -> None:
        os.chdir(store)
        os.lstat("inner")
        os.stat("inner")
        os.readlink("inner")
        with contextlib.suppress(OSError):
            os.open("inner", os.O_RDONLY | os.O_NOFOLLOW)
        os.symlink("new", "dangling")
        os.close(os.open("dangling", os.O_WRONLY | os.O_CREAT))
        os.unlink("dangling")

    assert run(program, roots=[Root("t", str(store))]).ops == [
        "stat t:inner",
        "stat t:sub/file",
        "readlink t:inner",
        "open_read t:inner",
        "symlink t:dangling",
        "open_write t:new",
        "close t:new",
        "unlink t:dangling",
    ]


def test_a_link_loop_fails_as_the_kernel_says(store: Path) -> None:
    """ELOOP, not a hang."""

    def program() -> None:
        os.symlink("b", store / "a")
        os.symlink("a", store / "b")
        fails(40, os.open, store / "a", os.O_RDONLY)

    assert run(program, roots=[Root("t", str(store))]).status == 0


def test_an_open_descriptor_by_its_proc_path(store: Path) -> None:
    """/dev/fd/N and /proc/self/fd/N of a tracked file open that file, even when it has no name any more."""

    def program() -> None:
        number = os.open(store / "sub/file", os.O_RDWR)
        again = os.open(f"/dev/fd/{number}", os.O_RDONLY)
        assert os.read(again, 10) == b"x"
        os.unlink(store / "sub/file")
        nameless = os.open(f"/proc/self/fd/{number}", os.O_RDONLY)
        assert os.read(nameless, 10) == b"x"
        os.truncate(f"/proc/self/fd/{number}", 0)
        assert os.fstat(number).st_size == 0

    tree = run(program, roots=[Root("t", str(store))])
    assert tree.status == 0
    assert [op for op in tree.ops if op.startswith(("open", "trunc"))] == [
        "open_write t:sub/file",
        "open_read t:sub/file",
        "open_read t:sub/file",
        "truncate t:sub/file",
    ]


def test_names_are_bytes(tmp_path: Path) -> None:
    """Non-ASCII and undecodable names are kept: surrogates stand for undecodable bytes."""

    def program() -> None:
        for name in ("grün".encode(), b"\xff\xfe"):
            with open(os.fsencode(tmp_path) + b"/" + name, "wb"):
                pass

    tree = run(program, roots=[Root("t", str(tmp_path))])
    assert [it.raw for it in tree.named("open_write")] == ["t:grün", "t:" + text_of(b"\xff\xfe")]


def test_the_longest_root_wins(tmp_path: Path) -> None:
    """A root within a root is its own tier; the root itself is a dot; what lies outside is no operation."""
    (tmp_path / "all/local").mkdir(parents=True)

    def program() -> None:
        os.stat(tmp_path / "all")
        os.stat(tmp_path / "all/local")
        os.mkdir(tmp_path / "all/local/x")
        os.mkdir(tmp_path / "all-not")

    tree = run(program, roots=[Root("shared", str(tmp_path / "all")), Root("local", str(tmp_path / "all/local"))])
    assert tree.ops == ["stat shared:.", "stat local:.", "mkdir local:x"]


def test_wrong_pointers_and_paths_fail_like_the_kernel(tmp_path: Path) -> None:
    """EFAULT for a path that is no memory, ENAMETOOLONG, ENOENT, ENOTDIR, EISDIR, EEXIST: each as without a gate."""
    import ctypes

    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "dir").mkdir()
    libc = ctypes.CDLL(None, use_errno=True)

    def program() -> None:
        assert libc.open(ctypes.c_void_p(8), 0) == -1
        assert ctypes.get_errno() == 14
        fails(36, os.open, tmp_path / ("x" * 300), os.O_CREAT)
        fails(36, os.open, "/" + "y/" * 3000, os.O_RDONLY)
        fails(2, os.open, tmp_path / "none/x", os.O_CREAT)
        fails(20, os.open, tmp_path / "file/x", os.O_CREAT)
        fails(21, os.open, tmp_path / "dir", os.O_WRONLY)
        fails(17, os.open, tmp_path / "file", os.O_CREAT | os.O_EXCL)
        fails(20, os.open, f"{tmp_path}/file/", os.O_RDONLY)
        fails(22, os.rmdir, f"{tmp_path}/dir/.")
        fails(16, os.rename, tmp_path / "file", f"{tmp_path}/dir/..")
        fails(2, os.mkdir, "")
        fails(9, lambda: os.stat("none", dir_fd=99))
        fails(20, os.open, f"{tmp_path}/dir/../file/..", os.O_RDONLY)
        os.mkdir(f"{tmp_path}/slash/")

    assert run(program, roots=[Root("t", str(tmp_path))]).status == 0
