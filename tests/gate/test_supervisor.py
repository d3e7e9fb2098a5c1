"""Tests of the gate: operations in order, and what a decision does to them."""

from __future__ import annotations

import os
from pathlib import Path

from chaosckpt.gate import Root
from tests.gate.driver import run


def test_a_write_and_rename_is_seen_in_order_with_its_data(tmp_path: Path) -> None:
    """The plainest checkpoint protocol gives its operations in order, each with its logical address."""

    def program() -> None:
        os.mkdir(tmp_path / "step")
        with open(tmp_path / "step/file.tmp", "wb") as file:
            file.write(b"hello")
            file.flush()
            os.fsync(file.fileno())
        os.rename(tmp_path / "step/file.tmp", tmp_path / "step/file")
        assert (tmp_path / "step/file").read_bytes() == b"hello"
        assert os.listdir(tmp_path / "step") == ["file"]

    tree = run(program, roots=[Root("shared", str(tmp_path))])
    assert tree.status == 0
    assert tree.ops[:6] == [
        "mkdir shared:step",
        "open_write shared:step/file.tmp",
        "write shared:step/file.tmp",
        "fsync shared:step/file.tmp",
        "close shared:step/file.tmp",
        "rename shared:step/file.tmp",
    ]
    assert tree.named("write")[0].data == b"hello"
    assert [it.address.op for it in tree.observed[6:]][:2] == ["open_read", "read"]
    assert tree.named("list")
    assert [it.address for it in tree.decided] == [it.address for it in tree.observed]
