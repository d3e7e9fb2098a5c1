"""One operation of a save or a recovery fails with an error number.

What it destroys: nothing that was written before. EIO sticks: every later operation on the content of that file fails
with it for the rest of the attempt, as on a bad block; the other errors are given once.
Survived by: everything must; no guarantee is needed. The target may let the save (or the recovery) fail, clearly, but
it may not acknowledge what it couldn't write, nor load what it couldn't read.
How it heals: at the next attempt.
Evidence: the gate answered the call with the error.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import ClassVar

import msgspec
from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.census import Point
from chaosckpt.model.fault import Decision, Ends, Errno, Memory, PointFault, Trigger
from chaosckpt.model.operation import Operation
from chaosckpt.model.phrasing import describe_operation

_OPENS = frozenset({"open_write", "open_read"})
_BY_HANDLE = _OPENS | {"write", "fsync", "rename", "unlink", "read", "list", "stat"}

ERRORS: dict[str, frozenset[str]] = {
    "EIO": _BY_HANDLE | {"close", "ftruncate", "truncate", "mkdir"},
    "EEXIST": frozenset({"mkdir", "link", "symlink"}),
    "ESTALE": _BY_HANDLE,
    "EMFILE": _OPENS,
}
"""Which error numbers which operations can give; no other is ever injected, because no file system would give it.

EIO: a medium or a server fails. EEXIST: another one made it just now. ESTALE: a network file system lost the handle.
EMFILE: the process has no descriptor left. Errors of full storage are a budget of their own (the kind `space`)."""

CONTENT = frozenset(["open_read", "open_write", "read", "write", "fsync", "close", "ftruncate", "truncate"])
"""Operations that a file's bad block makes fail again and again; its name can still be renamed and unlinked."""


class StorageError(PointFault, frozen=True, tag="errno"):
    """Fail one operation with `error` instead of performing it."""

    ends: ClassVar[Ends] = "perhaps"
    weight: ClassVar[float] = 2.0

    error: str = "EIO"

    def __post_init__(self) -> None:
        number(self.error)

    def decide(self, operation: Operation, memory: Memory) -> Decision:
        if not memory.took_effect:
            if operation.address != self.at.address:
                return None
            memory.took_effect = True
            if self.error == "EIO":
                memory.counters[operation.raw] = 1
            return Errno(number(self.error))
        if operation.raw not in memory.counters:
            return None
        if operation.address.op in CONTENT:
            return Errno(number(self.error))
        if operation.address.op == "rename" and operation.destination is not None:
            memory.counters[operation.destination] = 1
        elif operation.address.op == "unlink":
            del memory.counters[operation.raw]
        return None

    def accepts(self, op: str) -> bool:
        return op in ERRORS[self.error]

    def simpler(self) -> Iterable[StorageError]:
        if self.error != "EIO" and self.at.address.op in ERRORS["EIO"]:
            yield msgspec.structs.replace(self, error="EIO")

    def describe(self) -> str:
        return f"{describe_operation(self.at.address)} failed with {self.error}"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[StorageError] | None:
        if not context.can_inject(_can_fail):
            return None
        return context.points(_can_fail).flatmap(lambda i: _failing(context.golden.points[i]))


def _can_fail(point: Point) -> bool:
    return any(point.address.op in ops for ops in ERRORS.values())


def _failing(point: Point) -> st.SearchStrategy[StorageError]:
    """EIO in half of the cases where there is a choice."""
    possible = [error for error, ops in ERRORS.items() if point.address.op in ops]
    others = possible[1:] or possible
    return st.sampled_from([possible[0]] * len(others) + others).map(
        lambda error: StorageError(Trigger(point.address), error)
    )


def number(error: str) -> int:
    """The error number by its name. Raises ValueError for one that isn't injected."""
    if error not in ERRORS:
        raise ValueError(f"error = {error!r} is none of {', '.join(sorted(ERRORS))}")
    return int(getattr(errno, error))
