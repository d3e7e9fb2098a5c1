"""Names with a random part: found by two runs, whatever else is in them, and nothing else taken for random."""

from __future__ import annotations

import base64
import random
import re
import string
import uuid
from collections.abc import Callable, Sequence

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


HOST = "node-17.cluster"


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda draw: f"ckpt-4.json.{uuid.UUID(int=draw.getrandbits(128), version=4)}", "ckpt-4.json.*"),
        (lambda draw: f"ckpt-4.{base64.urlsafe_b64encode(draw.randbytes(16)).decode().rstrip('=')}", "ckpt-4.*"),
        (lambda draw: f"ckpt-4.{draw.randbytes(12).hex()}.bin", "ckpt-4.*.bin"),
        (
            lambda draw: f"ckpt-4-2026-12-01T{draw.randrange(24):02}:05:59.{draw.randrange(10**6):06}+00:00",
            "ckpt-4-*",
        ),
        (lambda draw: f"run-20261201_0415{draw.randrange(60):02}-x", "run-*-x"),
        (lambda draw: f"{draw.randrange(24):02}-15-{draw.randrange(60):02}", "*"),
        (
            lambda draw: f"events.out.{draw.randrange(10**9, 2 * 10**9)}.{HOST}.{draw.randrange(2, 10**5)}.0",
            "events.out.*.*.*.0",
        ),
        (lambda draw: f"pid{draw.randrange(2, 10**5)}_{draw.randbytes(4).hex()}", "pid*_*"),
    ],
    ids=["uuid", "base64", "hash", "time", "stamp", "clock", "events", "process and hash"],
)
@pytest.mark.parametrize("seed", range(10))
def test_shapes_of_random_names_read_alike_in_every_later_run(
    make: Callable[[random.Random], str], shown: str, seed: int
) -> None:
    """Goal: what two runs teach holds for a hundred more, whatever letters happened to be equal in the two; steps stay."""
    draw = random.Random(seed)
    kept = ["out:ckpt-4", "out:ckpt-2/rank-0.pt"]
    one, two = (sorted({f"out:d/{make(draw)}" for _ in range(2)}) for _ in range(2))
    patterns = random_parts([*kept, *one], [*kept, *two], HOST)
    later = [f"out:d/{make(draw)}" for _ in range(100)]
    assert set(without_random([*one, *two, *later], patterns)) == {f"out:d/{shown}"}
    assert without_random(kept, patterns) == kept


def test_a_date_is_random_though_both_runs_have_it() -> None:
    """Goal: two golden runs within one minute don't hide that the name is another one in the next."""
    patterns = random_parts(["out:log-2026-12-01-0415.txt", "out:a-2"], ["out:log-2026-12-01-0415.txt", "out:a-2"])
    assert without_random(["out:log-2026-12-02-0007.txt", "out:a-2"], patterns) == ["out:log-*.txt", "out:a-2"]


def test_dates_that_tell_files_apart_stay() -> None:
    """Goal: shards by day are no random names."""
    days = ["out:day-2026-11-30.pt", "out:day-2026-12-01.pt"]
    assert random_parts(days, days) == ()


def test_runs_that_differ_otherwise_are_left_alone() -> None:
    """Goal: another number of files, or a name of another kind, is no random name."""
    assert random_parts(["out:ckpt-2"], ["out:ckpt-2"]) == ()
    assert random_parts(["out:ckpt-2", "out:log"], ["out:ckpt-2"]) == ()
    assert random_parts(["out:a.b"], ["out:a+b"]) == ()
    assert alike(["out:x"], ["out:x"])
