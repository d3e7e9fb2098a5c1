"""Rolling checkpoints, which every save replaces under the same name: which save each operation belongs to."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence

from chaosckpt.commands.naming import Naming
from chaosckpt.model.operation import Operation

_ANEW = os.O_TRUNC | os.O_EXCL
_NAMES = ("rename", "link")


def nth_number(numbers: Sequence[int], nth: int) -> int:
    """The step of the save `nth`, from 0, of a run whose saves are of these steps; counted on where more is saved than is known."""
    if nth < len(numbers):
        return numbers[nth]
    return (numbers[-1] if numbers else 0) + nth - len(numbers) + 1


def numbered(
    trace: Sequence[Operation], steps: Sequence[int | None], naming: Naming, numbers: Sequence[int]
) -> list[int | None]:
    """The step of each operation that belongs to the checkpoint (`steps` has any number there), counted save by save and rank by rank.

    A save is over with a file once that has its final name: made under it, or renamed to it. The next save begins where a rank
    makes such a file anew, removes it or moves it away.
    """
    names = _final_names(trace, naming)
    saves = SaveCounter(naming)
    found: list[int | None] = []
    for operation, step, name in zip(trace, steps, names, strict=True):
        if step is not None:
            saves.see(operation, name)
        found.append(None if step is None else nth_number(numbers, saves.nth[operation.address.rank]))
    return found


def made_anew(trace: Sequence[Operation]) -> Counter[str]:
    """How often each name below `{out}` was given to something new, or made empty."""
    made = [operation.raw for operation in trace if operation.address.op == "open_write" and operation.flags & _ANEW]
    given = [operation.destination or "" for operation in trace if operation.address.op in _NAMES]
    return Counter(path for path in (*made, *given) if path.startswith("out:"))


class SaveCounter:
    """Counts the saves of each rank. `over` are the files, by final name, with which the save under way has finished."""

    def __init__(self, naming: Naming) -> None:
        self.nth: defaultdict[int, int] = defaultdict(int)
        self._naming = naming
        self._made: defaultdict[int, set[str]] = defaultdict(set)
        self._over: defaultdict[int, set[str]] = defaultdict(set)
        self._became: dict[str, str] = {}

    def follow(self, operation: Operation) -> None:
        """Take in the next operation of a run that goes on: what a name is going to become is known from the save before."""
        raw, destination = operation.raw, operation.destination
        self.see(operation, raw if self._naming.entry(raw) is not None else _renamed(raw, self._became))
        if operation.address.op in _NAMES and destination is not None:
            self._became[raw] = destination

    def see(self, operation: Operation, name: str) -> None:
        """Take in an operation on a file that has this name in the end."""
        op, rank = operation.address.op, operation.address.rank
        if op == "open_write" and operation.flags & _ANEW:
            self._begin_if(rank, name in self._over[rank])
            self._made[rank].add(name)
            if self._naming.entry(operation.raw) is not None:
                self._over[rank].add(name)
        elif op == "mkdir" and self._naming.entry(operation.raw) is None:
            self._begin_if(rank, name in self._over[rank])
        elif op in ("rename", "unlink", "rmdir"):
            self._begin_if(rank, any(_below(made, operation.raw) for made in self._over[rank]))
        if op in _NAMES and operation.destination is not None and self._naming.entry(operation.destination) is not None:
            self._given(rank, operation.destination)

    def _given(self, rank: int, destination: str) -> None:
        """What was made under another name has its final name now, for all ranks that made a part of it."""
        self._begin_if(rank, destination in self._over[rank])
        self._over[rank].add(destination)
        for other, made in self._made.items():
            self._over[other] |= {file for file in made if _below(file, destination)}

    def _begin_if(self, rank: int, begins: bool) -> None:
        if begins:
            self.nth[rank] += 1
            self._made[rank].clear()
            self._over[rank].clear()


def _below(path: str, top: str) -> bool:
    return path == top or path.startswith(top + "/")


def _final_names(trace: Sequence[Operation], naming: Naming) -> list[str]:
    """The path of each operation, or the name that it is given later as part of the checkpoint, itself or with a directory above it."""
    becomes: dict[str, str] = {}
    found: list[str] = []
    for operation in reversed(trace):
        if operation.address.op in _NAMES and operation.destination is not None:
            final = operation.destination
            becomes[operation.raw] = final if naming.entry(final) is not None else _renamed(final, becomes)
        name = operation.raw
        found.append(name if naming.entry(name) is not None else _renamed(name, becomes))
    found.reverse()
    return found


def _renamed(path: str, becomes: dict[str, str]) -> str:
    above, rest = path, ""
    while above:
        if above in becomes:
            return becomes[above] + rest
        above, slash, last = above.rpartition("/")
        rest = slash + last + rest
    return path
