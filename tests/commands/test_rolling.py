"""Rolling checkpoints: which save an operation belongs to, where every save has the same names."""

from __future__ import annotations

import os

import pytest

from chaosckpt.commands.labels import ends_of_saves, labelled
from chaosckpt.commands.naming import Naming, guessed_rolling
from chaosckpt.commands.rolling import made_anew, nth_number
from chaosckpt.engine.node.phase import ObservedPhase
from chaosckpt.model.operation import Address, Operation

FILE, DIRECTORY = Naming("{out}/last.pt"), Naming("{out}/last")


def op(name: str, path: str, destination: str | None = None, rank: int = 0, flags: int = 0) -> Operation:
    address = Address(rank, "main", name, path, 1, 0)
    return Operation(address=address, sequence=1, raw=path, destination=destination, flags=flags)


def written(path: str, rank: int = 0, flags: int = os.O_CREAT | os.O_TRUNC) -> list[Operation]:
    return [op("open_write", path, rank=rank, flags=flags), op("write", path, rank=rank), op("close", path, rank=rank)]


def temporary(name: str, times: int = 1) -> list[Operation]:
    opened = [op("open_write", name, flags=os.O_CREAT | os.O_EXCL)] * (times - 1)
    return [*opened, *written(name), op("rename", name, "out:last.pt")]


def replaced_directory(*, first: bool) -> list[Operation]:
    old = [op("rename", "out:last", "out:last.old")]
    removal = [op("unlink", "out:last.old/model.pt"), op("rmdir", "out:last.old")]
    new = [op("mkdir", "out:last.tmp"), *written("out:last.tmp/model.pt"), *written("out:last.tmp/rng.pt")]
    return [*new, *([] if first else old), op("rename", "out:last.tmp", "out:last"), *([] if first else removal)]


PROTOCOLS = {
    "in place": (FILE, [written("out:last.pt") for _ in range(3)]),
    "one temporary name": (FILE, [temporary("out:last.pt.tmp") for _ in range(3)]),
    "mkstemp, opened twice": (FILE, [temporary(f"tmp:x{n}", times=2) for n in range(3)]),
    "directory in place": (DIRECTORY, [[*written("out:last/model.pt"), *written("out:last/rng.pt")] for _ in range(3)]),
    "directory replaced": (DIRECTORY, [replaced_directory(first=n == 0) for n in range(3)]),
    "two ranks": (DIRECTORY, [[*written("out:last/0", rank=0), *written("out:last/1", rank=1)] for _ in range(3)]),
    "moved to a backup": (
        FILE,
        [[*([op("rename", "out:last.pt", "out:last.pt.bak")] if n else []), *written("out:last.pt")] for n in range(3)],
    ),
}


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_saves_are_told_apart_and_numbered(protocol: str) -> None:
    """Goal: each save's first and last operation are found, whatever way the file or directory is replaced."""
    naming, saves = PROTOCOLS[protocol]
    trace = [operation for save in saves for operation in save]
    lengths = [len(save) for save in saves]
    assert ends_of_saves(trace, naming, (20, 40, 60)) == {
        20: lengths[0] - 1,
        40: lengths[0] + lengths[1] - 1,
        60: sum(lengths) - 1,
    }


@pytest.mark.parametrize("protocol", sorted(set(PROTOCOLS) - {"mkstemp, opened twice"}))
def test_a_running_command_is_labelled_as_its_trace_is_afterwards(protocol: str) -> None:
    """Goal: an operation that is held has the label of the census, but for what only later names tell."""
    naming, saves = PROTOCOLS[protocol]
    trace = [operation for save in saves for operation in save]
    phase = ObservedPhase(naming, (20, 40, 60))
    running: list[int | None] = []
    for operation in trace:
        phase.see(operation)
        running.append(phase.step)
    afterwards = [label.step if label is not None else None for label in labelled(trace, naming, (20, 40, 60))]
    if protocol != "two ranks":  # their saves overlap, and the phase has one for all
        assert running == afterwards


def test_a_directory_emptied_first_is_retired_before_the_next_save() -> None:
    """Goal: to remove what was saved last is nothing that the save before did."""
    saved = [*written("out:last/model.pt")]
    trace = [*saved, op("unlink", "out:last/model.pt"), *saved]
    found = [str(label) for label in labelled(trace, DIRECTORY, (2, 4))]
    assert found == ["persist of save 2"] * 3 + ["retire of save 2"] + ["persist of save 4"] * 3


def test_numbers_go_on_where_more_is_saved_than_is_known() -> None:
    """Goal: a save of which no golden run knows has a step of its own."""
    assert [nth_number((20, 40), nth) for nth in range(4)] == [20, 40, 41, 42]
    assert nth_number((), 0) == 1


@pytest.mark.parametrize(
    ("trace", "left", "glob"),
    [
        ([*temporary("out:last.pt.tmp"), *temporary("out:last.pt.tmp"), *written("out:final.bin")], ["out:last.pt", "out:final.bin"],
         "{out}/last.pt"),
        ([*written("out:a/model.pt"), *written("out:a/state.pt")] * 2, ["out:a/model.pt", "out:a/state.pt"], "{out}/a"),
        (written("out:train.log") * 9, ["out:train.log"], None),
        ([], [], None),
    ],
    ids=["file", "directory", "log", "nothing"],
)  # fmt: skip
def test_a_name_that_is_made_anew_again_and_again_is_guessed(
    trace: list[Operation], left: list[str], glob: str | None
) -> None:
    """Goal: without a glob the checkpoint is found by what the run did, logs and temporary names left aside."""
    assert guessed_rolling(made_anew(trace), left) == glob
