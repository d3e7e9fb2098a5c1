"""Names with a random part: found by two runs, whatever else is in them, and nothing else taken for random."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Sequence

import pytest

from chaosckpt.commands.random_names import random_parts
from chaosckpt.engine.node.rank_process import decode_path

LETTERS = string.ascii_lowercase + string.digits + "_"
"""As tempfile draws them. Two drawn names have some letter in common by chance now and then, as here."""


def without_random(paths: list[str], patterns: Sequence[str]) -> list[str]:
    """As the gate reads them."""
    return [decode_path(path, [re.compile(pattern) for pattern in patterns]) for path in paths]


def drawn(seed: int) -> list[str]:
    source = random.Random(seed)
    return ["".join(source.choices(LETTERS, k=8)) for _ in range(6)]


def alike(one: list[str], two: list[str]) -> bool:
    patterns = random_parts(one, two)
    return without_random(one, patterns) == without_random(two, patterns)


@pytest.mark.parametrize("shape", ["tmp{}", ".tmp{}", "ckpt-{}.part", "{}"])
@pytest.mark.parametrize("seed", range(40))
def test_temporary_names_of_two_runs_read_alike(seed: int, shape: str) -> None:
    """Goal: three saves under names of the usual makers read alike in both runs."""
    names = [f"out:d/{shape.format(name)}" for name in drawn(seed)]
    one, two = names[:3], names[3:]
    patterns = random_parts(one, two)
    shown = [without_random(run, patterns) for run in (one, two)]
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("one", "two", "shown"),
    [
        (["out:ckpt-2.tmp.4711"], ["out:ckpt-2.tmp.988"], ["out:ckpt-2.tmp.*"]),
        (["out:ckpt-2", "tmp:tmpab12cd34/x"], ["out:ckpt-2", "tmp:tmpzy98xw76/x"], ["out:ckpt-2", "tmp:tmp*/x"]),
        (["out:.tmpQWERTY", "out:final"], ["out:.tmpasdfgh", "out:final"], ["out:.tmp*", "out:final"]),
        (["out:a-7-b", "out:ckpt-2"], ["out:a-9-b", "out:ckpt-2"], ["out:a-*-b", "out:ckpt-2"]),
        (["out:weights1", "out:q7w8e9r0"], ["out:weights1", "out:abcdefgh"], ["out:weights1", "out:*"]),
        (["out:a-12", "out:a-4711"], ["out:a-12", "out:a-988"], ["out:a-12", "out:a-*"]),
    ],
    ids=["process", "directory", "letters", "middle", "as long as another", "as many digits as another"],
)
def test_only_what_differs_is_taken_out(one: list[str], two: list[str], shown: list[str]) -> None:
    """Goal: steps and directories stay, in both runs."""
    patterns = random_parts(one, two)
    assert without_random(one, patterns) == without_random(two, patterns) == shown


def test_runs_that_differ_otherwise_are_left_alone() -> None:
    """Goal: another number of files, or a name of another kind, is no random name."""
    assert random_parts(["out:ckpt-2"], ["out:ckpt-2"]) == ()
    assert random_parts(["out:ckpt-2", "out:log"], ["out:ckpt-2"]) == ()
    assert random_parts(["out:a.b"], ["out:a+b"]) == ()
    assert alike(["out:x"], ["out:x"])
