"""Which operations get somewhere, and which only ask again."""

from __future__ import annotations

import pytest

from chaosckpt.engine.node.progress import Progress
from chaosckpt.model.operation import Address, Operation


def operation(op: str, path: str = "out:flag", result: int = 0, **fields: object) -> Operation:
    return Operation(address=Address(0, "main", op, path, 0, 0), sequence=0, raw=path, result=result, **fields)  # type: ignore[arg-type]


def after(*operations: Operation, seconds: float = 1.0) -> Progress:
    """What is known after these, each so long after the one before."""
    progress = Progress()
    for number, one in enumerate(operations):
        progress.note(one, 7, progress._last + seconds if number else progress._last + 5.0)
    return progress


def test_a_question_that_is_asked_again_gets_nowhere() -> None:
    """Goal: `while not path.exists()` counts once, until the answer or the storage is another."""
    absent, present = operation("stat", result=-2), operation("stat")
    assert after(absent, absent, absent).operations == 1
    assert after(absent, absent, present, present).operations == 2
    assert after(absent, operation("write", "out:other"), absent, absent).operations == 3


def test_a_file_that_is_read_again_gets_nowhere() -> None:
    """Goal: a loop that opens, reads and closes a status file is told from a recovery that reads on."""
    once = [
        operation("open_read", handle=1),
        operation("read", handle=1, offset=0, result=4),
        operation("close", handle=1),
    ]
    again = [
        operation("open_read", handle=2),
        operation("read", handle=2, offset=0, result=4),
        operation("close", handle=2),
    ]
    assert after(*once, *again).operations == 3
    assert after(*once, operation("read", handle=1, offset=4, result=4)).operations == 4


@pytest.mark.parametrize("op", ["write", "fsync", "close", "unlink", "mkdir", "mark"])
def test_what_may_change_storage_gets_somewhere_each_time(op: str) -> None:
    """Goal: even where it fails: a save that tries again is never at rest."""
    assert after(operation(op, result=-5), operation(op, result=-5)).operations == 2


def test_pauses_are_measured_between_what_gets_somewhere() -> None:
    """Goal: from the launch to the first operation, and the longest pause between two; questions asked again don't end one."""
    absent = operation("stat", result=-2)
    pauses = after(operation("write"), operation("write"), absent).pauses()
    assert pauses.first == pytest.approx(5.0)
    assert pauses.between == pytest.approx(1.0)
