"""Always recoverable: at which operations of a fault-free run nothing would be left to recover, found by running recovery there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from chaosckpt.engine.golden.points import Prefixes
from chaosckpt.model.census import RecoveryGap
from chaosckpt.model.operation import WRITING

MOST_PREFIXES = 200
"""Of more, so many are tried, spread evenly."""


def find_gaps(
    prefixes: Prefixes, progress: Callable[[str], None] = lambda text: None
) -> tuple[tuple[RecoveryGap, ...], int]:
    """The operations after which recovery finds less than the newest finished save, and how many were tried.

    A save counts as finished after its last operation on any rank. Of the writes to one open file only the first and the last are
    tried: what lies between them is cut short like the first.
    """
    places = spread(list(_telling(prefixes)), MOST_PREFIXES)
    found = []
    for number, place in enumerate(places, 1):
        progress(f"recovery after every operation: {number} of {len(places)}")
        required = _finished(prefixes, place)
        if required is None:
            continue
        chosen = prefixes.chosen(place, required)
        step = next(iter(chosen)) if len(chosen) == 1 else None
        if step is None or step < required:
            found.append(RecoveryGap(prefixes.rows[place].operation.address, required, step))
    return tuple(found), len(places)


def spread(places: Sequence[int], most: int) -> Sequence[int]:
    """So many of these places at most, spread evenly."""
    return places if len(places) <= most else [places[i * len(places) // most] for i in range(most)]


def _telling(prefixes: Prefixes) -> Iterator[int]:
    """Operations after the first finished save that change storage."""
    rows = prefixes.rows
    for place, row in enumerate(rows):
        operation = row.operation
        if operation.address.op not in WRITING or operation.address.op in ("fsync", "close", "sync"):
            continue
        if operation.result is None or operation.result < 0 or _finished(prefixes, place) is None:
            continue
        if operation.address.op == "write" and _within(prefixes, place):
            continue
        yield place


def _within(prefixes: Prefixes, place: int) -> bool:
    """Whether this write has others before and after it through the same open file."""
    here = prefixes.rows[place].operation

    def same(other: int) -> bool:
        there = prefixes.rows[other].operation
        key = (here.address.rank, here.handle, "write")
        return (there.address.rank, there.handle, there.address.op) == key

    rows = range(len(prefixes.rows))
    return any(same(other) for other in rows[:place]) and any(same(other) for other in rows[place + 1 :])


def _finished(prefixes: Prefixes, place: int) -> int | None:
    """The newest step all of whose operations, on any rank, lie at or before this place."""
    last: dict[int, int] = {}
    for other, row in enumerate(prefixes.rows):
        if row.phase == "save" and row.step is not None:
            last[row.step] = other
    return max((step for step, end in last.items() if end <= place), default=None)
