"""Listings without some of their entries: the bytes alone, and a program that lists a directory under the gate."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaosckpt.gate import Root
from chaosckpt.gate.reads import without
from chaosckpt.model.fault import Decision, Hide
from chaosckpt.model.operation import Operation
from tests.gate.driver import run

NAMES = st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=40)


def record(number: int, name: bytes, name_offset: int) -> bytes:
    length = (name_offset + len(name) + 1 + 7) // 8 * 8
    head = struct.pack("=QQH", number + 1, number * 7, length) + b"\x08" * (name_offset - 18)
    return (head + name).ljust(length, b"\0")


@given(names=st.sets(NAMES), hidden=st.sets(NAMES), offset=st.sampled_from([18, 19]))
def test_only_what_is_named_is_left_out(names: set[str], hidden: set[str], offset: int) -> None:
    """Goal: whatever the names, records that are kept stay byte for byte and in order; names that aren't there cost nothing."""
    listed = [name.encode() for name in sorted(names)]
    taken = {name.encode() for name in [*sorted(names)[::3], *hidden]}
    records = {name: record(number, name, offset) for number, name in enumerate(listed)}
    kept, left_out = without(b"".join(records.values()), taken.__contains__, offset)
    assert kept == b"".join(data for name, data in records.items() if name not in taken)
    assert left_out == [name for name in listed if name in taken]


@pytest.mark.parametrize("count", [1, 7, 2000])
def test_a_program_does_not_see_hidden_entries(tmp_path: Path, count: int) -> None:
    """Goal: a listing of any length, in as many calls as it takes, lacks just the hidden names, and is whole otherwise."""
    folder = tmp_path / "d"
    folder.mkdir()
    names = {f"name-{number}" for number in range(count)}
    for name in names:
        (folder / name).touch()
    hidden = {f"name-{number}" for number in range(0, count, 5)} | {"not-there"}

    def decide(operation: Operation) -> Decision:
        return Hide(tuple(sorted(hidden))) if operation.address.op == "list" else None

    def look() -> None:
        assert set(os.listdir(folder)) == names - hidden
        with os.scandir(folder) as entries:
            assert {entry.name for entry in entries if entry.is_file()} == names - hidden

    tree = run(look, roots=[Root("t", str(tmp_path))], decide=decide)
    assert tree.status == 0


def test_a_listing_of_hidden_entries_only_is_empty(tmp_path: Path) -> None:
    """Goal: an answer of no entries isn't taken for the end while there are more."""
    for number in range(1000):
        (tmp_path / f"{number:0200}").touch()
    kept = f"{500:0200}"
    hidden = (*sorted(set(os.listdir(tmp_path)) - {kept}), ".", "..")

    def look() -> None:
        assert os.listdir(tmp_path) == [kept]

    tree = run(
        look, roots=[Root("t", str(tmp_path))], decide=lambda it: Hide(hidden) if it.address.op == "list" else None
    )
    assert tree.status == 0


def test_hidden_names_may_have_random_parts(tmp_path: Path) -> None:
    """Goal: an entry is hidden by the name that addresses have for it, whatever its random part is in this run."""
    for name in ("step-1-x3f9", "step-2-ab12", "step-3"):
        (tmp_path / name).touch()

    def look() -> None:
        assert sorted(os.listdir(tmp_path)) == ["step-1-x3f9", "step-3"]

    tree = run(
        look,
        roots=[Root("t", str(tmp_path))],
        decide=lambda it: Hide(("step-2-*",)) if it.address.op == "list" else None,
        decode=lambda path: re.sub(r"(?<=\d-)\w{4}$", "*", path),
    )
    assert tree.status == 0
