"""Tests of the replay of a trace; that it equals what real programs leave is tested with the gate."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from chaosckpt.gate.replay import replay
from chaosckpt.model.operation import Address, Operation


def operation(op: str, raw: str, *, rank: int = 0, **fields: Any) -> Operation:
    address = Address(rank, "main", op, fields["destination"] if raw.startswith("/") else raw, 0, 0)
    return Operation(address=address, sequence=1, raw=raw, **{"result": 0, **fields})


CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def test_a_protocol_replays_to_its_directory(tmp_path: Path) -> None:
    """mkdir, open, writes out of order, chmod, rename, links: names, contents and modes."""
    trace = [
        operation("mkdir", "t:step", mode=0o750),
        operation("open_write", "t:step/f", handle=1, flags=CREATE, mode=0o640),
        operation("write", "t:step/f", handle=1, offset=3, result=2, data=b"de"),
        operation("write", "t:step/f", handle=1, offset=0, result=3, data=b"abc"),
        operation("fsync", "t:step/f", handle=1),
        operation("close", "t:step/f", handle=1),
        operation("link", "t:step/f", destination="t:step/twin"),
        operation("chmod", "t:step/f", mode=0o444),
        operation("rename", "t:step/f", destination="t:step/g"),
        operation("symlink", "t:latest", destination="step/g"),
    ]
    replay(trace, {"t": tmp_path})
    assert (tmp_path / "latest").read_bytes() == b"abcde"
    assert (tmp_path / "step/twin").samefile(tmp_path / "step/g")
    assert stat.S_IMODE(os.stat(tmp_path / "step").st_mode) == 0o750
    assert stat.S_IMODE(os.stat(tmp_path / "step/g").st_mode) == 0o444


def test_what_failed_or_was_not_performed_changes_nothing(tmp_path: Path) -> None:
    """An error number in the result means that nothing happened."""
    replay([operation("mkdir", "t:d", result=-28), operation("unlink", "t:x", result=-2)], {"t": tmp_path})
    assert os.listdir(tmp_path) == []


def test_an_open_file_is_followed_and_not_its_name(tmp_path: Path) -> None:
    """Writes through a file that was renamed, replaced or removed go where the real ones went."""
    trace = [
        operation("open_write", "t:a", handle=1, flags=CREATE, mode=0o600),
        operation("rename", "t:a", destination="t:b"),
        operation("open_write", "t:a", handle=2, flags=CREATE, mode=0o600),
        operation("open_write", "t:a", rank=1, handle=1, flags=os.O_WRONLY),
        operation("write", "t:b", handle=1, offset=0, result=3, data=b"old"),
        operation("write", "t:a", rank=1, handle=1, offset=0, result=3, data=b"new"),
        operation("unlink", "t:a"),
        operation("write", "t:a", handle=2, offset=0, result=4, data=b"gone"),
        operation("ftruncate", "t:b", handle=1, length=2),
    ]
    replay(trace, {"t": tmp_path})
    assert os.listdir(tmp_path) == ["b"]
    assert (tmp_path / "b").read_bytes() == b"ol"


def test_tiers_and_the_world_outside(tmp_path: Path) -> None:
    """Tiers are directories of their own; what was moved in has its content in the trace, what was moved out is gone."""
    roots = {"local": tmp_path / "l", "shared": tmp_path / "s"}
    for root in roots.values():
        root.mkdir()
    trace = [
        operation("rename", "/tmp/x", destination="local:in", mode=stat.S_IFREG | 0o600, data=b"from outside"),
        operation("rename", "local:in", destination="shared:in"),
        operation("mkdir", "local:d", mode=0o755),
        operation("open_write", "local:d/f", flags=CREATE, mode=0o600),
        operation("rename", "local:d", destination="/tmp/gone"),
    ]
    replay(trace, roots)
    assert (roots["shared"] / "in").read_bytes() == b"from outside"
    assert os.listdir(roots["local"]) == []


def test_a_trace_without_data_is_refused(tmp_path: Path) -> None:
    """The sentence names the operation and what to do."""
    trace = [
        operation("open_write", "t:a", handle=1, flags=CREATE, mode=0o600),
        operation("write", "t:a", handle=1, result=5),
    ]
    with pytest.raises(ValueError, match=r"no data for rank 0 write .* keep_data"):
        replay(trace, {"t": tmp_path})


def test_nothing_stays_open_and_the_umask_comes_back(tmp_path: Path) -> None:
    """Also when the trace does not fit the directory."""
    before, mask = len(os.listdir("/proc/self/fd")), os.umask(0o027)
    try:
        with pytest.raises(FileNotFoundError):
            replay(
                [operation("open_write", "t:a", handle=1, flags=CREATE, mode=0o666), operation("unlink", "t:b")],
                {"t": tmp_path},
            )
        assert len(os.listdir("/proc/self/fd")) == before
        assert os.umask(0o027) == 0o027
        assert stat.S_IMODE(os.stat(tmp_path / "a").st_mode) == 0o666
    finally:
        os.umask(mask)


def test_a_root_removed_moved_and_made_again(tmp_path: Path) -> None:
    """Goal: what a script does at a fresh start, `rmtree(out)` and `makedirs(out)`, replays like all else."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "out").mkdir()
    trace = [
        operation("mkdir", "out:a", mode=0o755),
        operation("rmdir", "out:a"),
        operation("rmdir", "out:."),
        operation("mkdir", "out:.", mode=0o750),
        operation("mkdir", "out:b", mode=0o755),
        operation("rename", "out:.", destination="tmp:old"),
        operation("mkdir", "out:.", mode=0o700),
        operation("open_write", "out:f", flags=CREATE, mode=0o600),
    ]
    replay(trace[:3], {"out": tmp_path / "out", "tmp": tmp_path / "tmp"})
    assert not (tmp_path / "out").exists()
    replay(trace[3:], {"out": tmp_path / "out", "tmp": tmp_path / "tmp"})
    assert os.listdir(tmp_path / "tmp/old") == ["b"]
    assert os.listdir(tmp_path / "out") == ["f"]
    assert stat.S_IMODE(os.stat(tmp_path / "tmp/old").st_mode) == 0o750
