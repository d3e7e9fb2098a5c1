"""Tests of writes: data, positions, and every call that changes an open file."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

from chaosckpt.gate import Root
from chaosckpt.gate.memory import CHUNK
from chaosckpt.model.operation import Operation
from tests.gate.driver import fails, run


def placed(operations: list[Operation]) -> list[tuple[int | None, bytes | None, int | None]]:
    return [(it.offset, it.data, it.result) for it in operations if it.address.op == "write"]


def test_every_kind_of_write_says_offset_and_data(tmp_path: Path) -> None:
    """write, pwrite, writev, pwritev, pwritev2 with its flags, and appending ones."""

    def program() -> None:
        fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
        os.write(fd, b"abc")
        os.writev(fd, [b"d", b"", b"ef"])
        os.pwrite(fd, b"X", 1)
        os.pwritev(fd, [b"Y", b"Z"], 2)
        os.pwritev(fd, [b"end"], 0, 0x10)  # RWF_APPEND
        os.pwritev(fd, [b"s"], 0, os.RWF_DSYNC)
        assert os.lseek(fd, 0, os.SEEK_CUR) == 6
        os.lseek(fd, 8, os.SEEK_SET)
        os.write(fd, b"!")
        other = os.open(tmp_path / "f", os.O_WRONLY | os.O_APPEND)
        os.write(other, b"++")
        assert os.pread(fd, 100, 0) == b"sXYZefen!++"

    tree = run(program, roots=[Root("t", str(tmp_path))])
    assert tree.status == 0
    assert placed(tree.observed) == [
        (0, b"abc", 3),
        (3, b"def", 3),
        (1, b"X", 1),
        (2, b"YZ", 2),
        (6, b"end", 3),
        (0, b"s", 1),
        (8, b"!", 1),
        (9, b"++", 2),
    ]


def test_a_large_write_is_one_operation_in_parts(tmp_path: Path) -> None:
    """With data kept, memory is bounded by the chunk: one decision, several observed parts."""
    size = 2 * CHUNK + 5
    tree = run(lambda: (tmp_path / "f").write_bytes(b"x" * size), roots=[Root("t", str(tmp_path))])
    assert [(it.part, it.offset, it.result) for it in tree.named("write")] == [
        (0, 0, CHUNK),
        (1, CHUNK, CHUNK),
        (2, 2 * CHUNK, 5),
    ]
    assert len({it.address for it in tree.named("write")}) == 1
    assert [it.length for it in tree.decided if it.address.op == "write"] == [size]
    assert b"".join(it.data or b"" for it in tree.named("write")) == (tmp_path / "f").read_bytes()


def test_a_large_write_without_data_is_left_to_the_kernel(tmp_path: Path) -> None:
    """Undisturbed, and with nobody keeping its data, it is observed with its full length."""
    tree = run(
        lambda: (tmp_path / "f").write_bytes(b"y" * 3_000_000), roots=[Root("t", str(tmp_path))], keep_data=False
    )
    assert placed(tree.observed) == [(0, None, 3_000_000)]
    assert (tmp_path / "f").read_bytes() == b"y" * 3_000_000


def test_pointers_that_end_early(tmp_path: Path) -> None:
    """A write from memory that ends is short there; from none at all, EFAULT; bad vectors, EINVAL: as the kernel says."""
    libc = ctypes.CDLL(None, use_errno=True)

    def program() -> None:
        fd = os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT)
        room = mmap.mmap(-1, 3 * 4096)
        room[:] = b"m" * len(room)
        start = ctypes.addressof(ctypes.c_char.from_buffer(room))
        assert libc.mprotect(ctypes.c_void_p(start + 2 * 4096), 4096, 0) == 0
        assert libc.write(fd, ctypes.c_void_p(start + 4096), 8192) == 4096
        assert libc.write(fd, ctypes.c_void_p(8), 10) == -1
        assert ctypes.get_errno() == 14
        assert libc.writev(fd, ctypes.c_void_p(start), 5000) == -1
        assert ctypes.get_errno() == 22
        assert libc.write(fd, None, 0) == 0

    tree = run(program, roots=[Root("t", str(tmp_path))])
    assert tree.status == 0
    assert [it.result for it in tree.named("write")] == [4096, -14, 0]


def test_a_write_through_a_reading_descriptor_fails(tmp_path: Path) -> None:
    """EBADF, and it is an operation that failed."""
    (tmp_path / "f").write_bytes(b"x")

    def program() -> None:
        fd = os.open(tmp_path / "f", os.O_RDONLY)
        fails(9, os.write, fd, b"y")

    tree = run(program, roots=[Root("t", str(tmp_path))])
    assert tree.status == 0
    assert [it.result for it in tree.named("write")] == [-9]


def test_direct_writes_need_no_alignment(tmp_path: Path) -> None:
    """O_DIRECT from aligned memory works, small or large, and so does turning it on later."""
    import fcntl

    def program() -> None:
        fd = os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
        room = mmap.mmap(-1, 1 << 20)
        room[:] = b"d" * len(room)
        os.write(fd, memoryview(room)[:4096])
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_DIRECT)
        os.write(fd, room)

    tree = run(program, roots=[Root("t", str(tmp_path))], keep_data=False)
    assert tree.status == 0
    assert (tmp_path / "f").read_bytes() == b"d" * (4096 + (1 << 20))


def test_calls_that_resize_and_sync_say_their_arguments(tmp_path: Path) -> None:
    """ftruncate, truncate, fallocate, fchmod, fsync, fdatasync, syncfs and sync."""
    libc = ctypes.CDLL(None, use_errno=True)

    def program() -> None:
        fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, 100)
        os.truncate(tmp_path / "f", 50)
        os.posix_fallocate(fd, 10, 200)
        assert libc.fallocate(fd, 1, ctypes.c_long(0), ctypes.c_long(4096)) == 0  # KEEP_SIZE
        assert os.fstat(fd).st_size == 210
        os.fchmod(fd, 0o640)
        os.fsync(fd)
        os.fdatasync(fd)
        assert libc.syncfs(fd) == 0
        os.sync()
        directory = os.open(tmp_path, os.O_RDONLY)
        os.fsync(directory)

    tree = run(program, roots=[Root("t", str(tmp_path))])
    assert tree.status == 0
    got = [(it.address.op, it.raw, it.offset, it.length, it.flags, it.mode) for it in tree.observed]
    assert got[1:11] == [
        ("ftruncate", "t:f", None, 100, 0, 0),
        ("truncate", "t:f", None, 50, 0, 0),
        ("fallocate", "t:f", 10, 200, 0, 0),
        ("fallocate", "t:f", 0, 4096, 1, 0),
        ("chmod", "t:f", None, None, 0, 0o640),
        ("fsync", "t:f", None, None, 0, 0),
        ("fsync", "t:f", None, None, 1, 0),
        ("sync", "t:f", None, None, 0, 0),
        ("sync", "t:.", None, None, 0, 0),
        ("open_read", "t:.", None, None, os.O_RDONLY | os.O_CLOEXEC, 0),
    ]
    assert tree.ops[11] == "fsync t:."
