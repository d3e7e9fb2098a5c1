"""A file or directory can't be seen yet by one rank: a cached directory, a lookup that was answered "not there" a moment
ago, an object store that lists late.

What it destroys: nothing; every other rank sees it.
Survived by: everything must; no guarantee is needed. The recovery that it hits may fail, or choose an older
checkpoint (every rank the same), since the newest one is not there for all.
How it heals: by itself, after so many lookups, or at the next attempt.
Evidence: the gate answered a lookup with ENOENT, or left an entry out of a listing that had it.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import msgspec
from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.fault import Decision, Ends, Errno, Hide, Memory, PointFault, Trigger
from chaosckpt.model.golden_index import CHANGING
from chaosckpt.model.operation import Address, Operation
from chaosckpt.model.phrasing import describe_operation, describe_path, plural

LOOKUPS = frozenset({"open_read", "stat", "access", "readlink"})
_COUNT = "lookups"


class NotVisible(PointFault, frozen=True, tag="not-visible"):
    """From the trigger on, hide `path` and what is below it from the trigger's rank, `lookups` times (0: to the attempt's end)."""

    ends: ClassVar[Ends] = "perhaps"
    blurs: ClassVar[bool] = True

    path: str
    lookups: int = 0

    def __post_init__(self) -> None:
        if self.lookups < 0:
            raise ValueError(f"lookups = {self.lookups} must not be negative")
        if not concerns(self.at.address, self.path):
            raise ValueError(f"{self.at.address} doesn't look for {self.path}")

    def decide(self, operation: Operation, memory: Memory) -> Decision:
        address = operation.address
        if address.rank != self.at.address.rank or not (memory.took_effect or address == self.at.address):
            return None
        if not concerns(address, self.path) or 0 < self.lookups <= memory.counters.get(_COUNT, 0):
            return None
        memory.took_effect = True
        memory.counters[_COUNT] = memory.counters.get(_COUNT, 0) + 1
        return Hide((self.path.rpartition(":")[2].rpartition("/")[2],)) if address.op == "list" else Errno(errno.ENOENT)

    def accepts(self, op: str) -> bool:
        return op in LOOKUPS or op == "list"

    def moved(self, at: Sequence[Trigger]) -> NotVisible:
        """To another lookup of the same path, else to what that one looks for."""
        path = self.path if concerns(at[0].address, self.path) else at[0].address.path
        return msgspec.structs.replace(self, at=at[0], path=path) if concerns(at[0].address, path) else self

    def simpler(self) -> Iterable[NotVisible]:
        if self.lookups:
            yield msgspec.structs.replace(self, lookups=0)

    def describe(self) -> str:
        until = f"for {plural(self.lookups, 'lookup')}" if self.lookups else "until the attempt ends"
        first = describe_operation(self.at.address)
        return f"{describe_path(self.path)} invisible to rank {self.at.address.rank} {until}, starting with {first}"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[NotVisible] | None:
        looks = list(_first_looks(context))
        if not looks:
            return None
        return st.sampled_from(looks).flatmap(
            lambda look: st.sampled_from((0, 0, 1, 3)).map(lambda lookups: cls(Trigger(look[0]), look[1], lookups))
        )


def concerns(address: Address, path: str) -> bool:
    """Whether an operation looks for this path or below it, or lists the directory in which it stands."""
    if address.op == "list":
        return address.path == parent(path)
    return address.op in LOOKUPS and (address.path == path or address.path.startswith(path + "/"))


def parent(path: str) -> str:
    """The directory above, `tier:.` for what stands in the root."""
    tier, _, relative = path.partition(":")
    return f"{tier}:{relative.rpartition('/')[0] or '.'}"


def _first_looks(context: FaultContext) -> Iterator[tuple[Address, str]]:
    """For each rank and each path that a recovery reads, or a directory on the way there: the rank's first look for it.

    Of a save it is what the rank opens to read, or looks at once a peer has surely made it, and hasn't made itself.
    """
    points, allowed = context.golden.points, set(context.candidates)
    read = [p for p in points if p.address.op == "open_read"]
    recovered = sorted({path for p in read if p.label.step is None for path in _and_above(p.address.path)})
    for rank in range(context.topology.world_size):
        made: list[str] = []
        looked = [p for p in points if p.address.rank == rank and p.address.op in LOOKUPS]
        left = dict.fromkeys([*recovered, *(p.address.path for p in looked if p in read or p.label.step is not None)])
        for i in context.golden.of_rank(rank):
            address, recovers = points[i].address, points[i].label.step is None
            if address.op in CHANGING or address.op == "mkdir":
                made.append(parent(address.path) if address.op in ("rename", "link") else address.path)
            for path in [path for path in left if concerns(address, path)]:
                if recovers or address.op == "open_read":
                    expected = path in recovered if recovers else address.path == path
                else:
                    expected = address.path == path and _made_by_a_peer(context, path, i)
                    if not expected:
                        continue  # it asks whether there is anything yet
                del left[path]
                if expected and i in allowed and not any(_related(path, own) for own in made):
                    yield address, path


def _made_by_a_peer(context: FaultContext, path: str, look: int) -> bool:
    """Whether another rank has surely made a file or directory before a rank looks at it."""
    rank = context.golden.points[look].address.rank
    return any(
        point.address.path == path and point.address.rank != rank and context.golden.surely_before(made, look)
        for made, point in enumerate(context.golden.points)
        if point.address.op in ("mkdir", "open_write")
    )


def _and_above(path: str) -> Iterator[str]:
    while not path.endswith(":."):
        yield path
        path = parent(path)


def _related(path: str, made: str) -> bool:
    return (
        path == made
        or path.startswith(made.removesuffix(".") + "/")
        or made.startswith(path + "/")
        or (made.endswith(":.") and path.startswith(made[:-1]))
    )
