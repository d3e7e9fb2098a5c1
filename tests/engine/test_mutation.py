"""What a node does to files between two attempts."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from chaosckpt.engine.node.mutation import mutate
from chaosckpt.engine.node.rank_process import decode_path
from chaosckpt.engine.wire import storage
from chaosckpt.errors import HarnessError
from chaosckpt.model.mutation import CutOff, FlipBit, Mutated, Mutation, Plant, ReverseTimes

NONCES = [re.compile(r"tmp\w{4}")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tier = storage.make(tmp_path / "storage") / "shared"
    (tier / "step").mkdir(parents=True)
    (tier / "step" / "a").write_bytes(b"abcd")
    (tier / "step" / "tmpq3x7").write_bytes(b"wxyz")
    return tier


def done(root: Path, what: Mutation) -> list[Mutated]:
    return mutate("shared", root, what, lambda path: decode_path(path, NONCES))


def test_a_bit_is_turned_over_and_nothing_else(root: Path) -> None:
    """Goal: exactly one bit differs, modulo the file's size, and the modification time doesn't tell."""
    before = (root / "step" / "a").stat().st_mtime_ns
    (told,) = done(root, FlipBit("shared:step/a", 5, 1))
    assert (root / "step" / "a").read_bytes() == b"a`cd"
    assert (root / "step" / "a").stat().st_mtime_ns == before
    assert told == Mutated("shared:step/a", "bit 1 of byte 1 was flipped")


def test_the_end_of_a_file_named_by_its_nonce_is_cut_off(root: Path) -> None:
    """Goal: files are found by census path, random parts decoded; a file is never longer than it was."""
    (told,) = done(root, CutOff("shared:step/*", 3))
    assert (told.path, (root / "step" / "tmpq3x7").read_bytes()) == ("shared:step/tmpq3x7", b"w")
    done(root, CutOff("shared:step/*", 1000))
    assert (root / "step" / "tmpq3x7").read_bytes() == b""
    assert done(root, CutOff("shared:step/*", 1)) == [], "what is empty has no end to lose"


def test_what_is_not_there_is_not_struck(root: Path) -> None:
    """Goal: without the file nothing is done, and nothing is told."""
    assert done(root, FlipBit("shared:step/b", 0, 0)) == []


def test_times_are_in_the_reverse_of_their_order(root: Path) -> None:
    """Goal: the oldest becomes the newest, and all differ."""
    names = ["step/a", "step/tmpq3x7", "step"]
    for age, name in enumerate(names):
        os.utime(root / name, ns=(age * 10, age * 10))
    assert len(done(root, ReverseTimes())) == 1
    assert sorted(names, key=lambda name: (root / name).stat().st_mtime_ns) == names[::-1]
    assert {path.name: path.read_bytes() for path in (root / "step").iterdir()} == {"a": b"abcd", "tmpq3x7": b"wxyz"}


def test_what_is_planted_is_empty_and_replaces_nothing(root: Path) -> None:
    """Goal: directories first, then files; what stands there already is left alone and not told."""
    told = done(root, Plant(("shared:step", "shared:step9"), ("shared:step9/a", "shared:step/a", "shared:none/a")))
    assert [one.path for one in told] == ["shared:step9", "shared:step9/a"]
    assert (root / "step9" / "a").read_bytes() == b""
    assert (root / "step" / "a").read_bytes() == b"abcd"


def test_only_marked_storage_is_touched(tmp_path: Path) -> None:
    """Goal: a directory that the harness didn't make is refused."""
    (tmp_path / "a").write_bytes(b"abcd")
    with pytest.raises(HarnessError, match="not in a directory that chaosckpt created"):
        done(tmp_path, FlipBit("shared:a", 0, 0))
