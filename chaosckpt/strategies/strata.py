"""Strata: what a campaign visits in turn, so that no kind of fault, operation or rank is left to luck.

Two rotations decide. The kind of a trial is the next one by weight: whatever the number of trials, each kind has had its part of them.
Within a kind, a trial with a single fault goes on to the next operation of the next rank, in a recovery and in a save by turns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.fault import Fault
from chaosckpt.model.schedule import AttemptPlan

Opened = tuple[AttemptPlan | None, FaultContext]
"""An attempt, and the plan of the one before it, where there is one."""


class Rotation:
    """Names in turn by weight (whole parts): among any number of turns each has its share, give or take one.

    The smooth weighted round-robin of nginx: at each turn every name earns its parts, and the richest pays the sum of all.
    """

    def __init__(self, parts: Mapping[str, int], seed: int) -> None:
        self._parts = dict(sorted(parts.items()))
        self._credit = dict.fromkeys(self._parts, 0)
        self._turns: list[str] = []
        self._first = hashlib.blake2b(f"chaosckpt/1/{seed}/rotation".encode()).digest()[0]

    def at(self, turn: int) -> str | None:
        """The name whose turn this is, counted from 0; None where there are no names."""
        if not self._parts:
            return None
        total = sum(self._parts.values())
        while len(self._turns) <= self._first + turn:
            for name, parts in self._parts.items():
                self._credit[name] += parts
            richest = max(self._parts, key=lambda name: self._credit[name])
            self._credit[richest] -= total
            self._turns.append(richest)
        return self._turns[self._first + turn]

    def before(self, turn: int) -> int:
        """How many turns the name whose turn this is has had before it."""
        name = self.at(turn)
        return 0 if name is None else self._turns[self._first : self._first + turn].count(name)


@dataclass(frozen=True, eq=False)
class Stratum:
    """Faults of one kind at one name of operation of one rank, in one attempt behind its opening."""

    opening: AttemptPlan | None
    strategy: st.SearchStrategy[Fault]


@dataclass
class Strata:
    """The strata of one kind: in each row, those that differ in nothing but the step that is recovered."""

    saves: dict[object, list[Stratum]] = field(default_factory=dict)
    recoveries: dict[object, list[Stratum]] = field(default_factory=dict)

    def at(self, turn: int, seed: int) -> Stratum | None:
        """The stratum whose turn this is, counted from 0 for this kind: recoveries and saves alternate, where there are both."""
        both = [rows for rows in (self.recoveries, self.saves) if rows]
        if not both:
            return None
        lap, side = divmod(turn, len(both))
        rows = both[side]
        keys = sorted(rows, key=lambda key: hashlib.blake2b(f"chaosckpt/1/{seed}/stratum/{key}".encode()).digest())
        lap, place = divmod(lap, len(keys))
        row = rows[keys[place]]
        return row[lap % len(row)]


def strata(kind: type[Fault], attempts: Sequence[Opened]) -> Strata:
    """The strata of a kind in these attempts. One that can't be aimed at a single operation has one stratum an attempt."""
    found = Strata()
    for opening, context in attempts:
        rows = found.recoveries if context.recovery_only else found.saves
        for key, stratum in _of_attempt(kind, opening, context):
            rows.setdefault(key, []).append(stratum)
    return found


def _of_attempt(
    kind: type[Fault], opening: AttemptPlan | None, context: FaultContext
) -> Iterator[tuple[object, Stratum]]:
    groups: dict[tuple[str, int], list[int]] = {}
    for i in context.candidates:
        address = context.golden.points[i].address
        groups.setdefault((address.op, address.rank), []).append(i)
    aimed = False
    for key, indices in sorted(groups.items()):
        strategy = kind.strategy(context.restricted(indices))
        if strategy is not None:
            aimed = True
            yield key, Stratum(opening, strategy)
    if not aimed and (strategy := kind.strategy(context)) is not None:
        yield ("any", -1), Stratum(opening, strategy)
