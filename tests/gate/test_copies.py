"""Tests of calls that move bytes inside the kernel: sendfile, splice, copy_file_range."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from chaosckpt.gate import Root
from tests.gate.driver import Supervised, fails, run


def written(tree: Supervised, path: str) -> bytes:
    return b"".join(it.data or b"" for it in tree.named("write") if it.raw == path)


def test_positions_and_offset_pointers_move_as_in_the_kernel(tmp_path: Path) -> None:
    """With a pointer the pointer moves, without one the file's position does; the data is in the trace."""
    (tmp_path / "in").write_bytes(bytes(range(200)))
    (tmp_path / "store").mkdir()

    def program() -> None:
        source = os.open(tmp_path / "in", os.O_RDONLY)
        out = os.open(tmp_path / "store/out", os.O_RDWR | os.O_CREAT)
        assert os.sendfile(out, source, 10, 20) == 20
        assert os.lseek(source, 0, os.SEEK_CUR) == 0
        assert os.sendfile(out, source, None, 5) == 5
        assert os.lseek(source, 0, os.SEEK_CUR) == 5
        assert os.copy_file_range(source, out, 30) == 30
        assert os.lseek(source, 0, os.SEEK_CUR) == 35
        assert os.copy_file_range(source, out, 4, 100, 0) == 4
        assert os.lseek(out, 0, os.SEEK_CUR) == 55
        assert os.copy_file_range(source, out, 1000, 190) == 10
        assert os.copy_file_range(source, out, 1000, 200) == 0
        assert os.copy_file_range(out, out, 5, 0, 80) == 5
        fails(22, os.copy_file_range, out, out, 5, 0, 2)

    tree = run(program, roots=[Root("t", str(tmp_path / "store"))])
    assert tree.status == 0
    assert written(tree, "t:out").startswith(bytes(range(10, 30)) + bytes(range(5)) + bytes(range(5, 35)))
    assert len(tree.named("read")) == 2, "a tracked input is a read"


def test_a_splice_waits_for_its_pipe(tmp_path: Path) -> None:
    """An empty pipe blocks the caller and not the supervisor: another thread of the program goes on and fills it."""

    def program() -> None:
        reader, writer = os.pipe()
        out = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
        begun = threading.Event()

        def late() -> None:
            begun.wait()
            (tmp_path / "other").write_bytes(b"o")  # The supervisor serves this while the splice waits.
            os.write(writer, b"through the pipe")
            os.close(writer)

        thread = threading.Thread(target=late)
        thread.start()
        begun.set()
        assert os.splice(reader, out, 100) == 16
        assert os.splice(reader, out, 100) == 0
        thread.join()

    tree = run(program, roots=[Root("t", str(tmp_path))])
    assert tree.status == 0
    assert written(tree, "t:out") == b"through the pipe"
    assert written(tree, "t:other") == b"o"


def test_a_pipe_that_does_not_block(tmp_path: Path) -> None:
    """EAGAIN from a non-blocking pipe, as the kernel has it."""

    def program() -> None:
        reader, _ = os.pipe2(os.O_NONBLOCK)
        out = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
        fails(11, os.splice, reader, out, 100)

    assert run(program, roots=[Root("t", str(tmp_path))]).status == 0


@pytest.mark.parametrize("size", [0, 5, 3_000_000])
@pytest.mark.parametrize("keep_data", [True, False])
def test_the_tools_that_people_use(tmp_path: Path, size: int, *, keep_data: bool) -> None:
    """shutil.copyfile, cp, mv and a shell's cat copy exactly, and every byte is in the trace when data is kept."""
    (tmp_path / "in").write_bytes(os.urandom(size))
    store = tmp_path / "store"
    store.mkdir()

    def program() -> None:
        shutil.copyfile(tmp_path / "in", store / "a")
        subprocess.run(["cp", tmp_path / "in", store / "b"], check=True)
        subprocess.run(["cp", "-a", store / "b", store / "c"], check=True)
        subprocess.run(["mv", store / "c", store / "d"], check=True)
        shutil.move(store / "d", store / "e")

    tree = run(program, roots=[Root("t", str(store))], keep_data=keep_data)
    assert tree.status == 0
    content = (tmp_path / "in").read_bytes()
    assert sorted(os.listdir(store)) == ["a", "b", "e"]
    assert all((store / name).read_bytes() == content for name in "abe")
    assert [op for op in tree.ops if op.startswith("rename")] == ["rename t:c", "rename t:d"]
    if keep_data:
        assert [written(tree, f"t:{name}") for name in "abc"] == [content] * 3
