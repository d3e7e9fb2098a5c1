"""Grouping: which violations are one finding. Causes as first seen lead to the canonical cause of their shrunk
schedules."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal

import msgspec

from chaosckpt.model.finding import Finding, RootCause

Sight = Literal["new", "pending", "known"]
"""new: shrink this one. pending: one with the same raw cause is being shrunk. known: it counts for a finding."""


class Group(msgspec.Struct):
    """One finding in the making: its canonical cause, the raw causes that shrank to it, and the trials that showed
    any."""

    id: str
    cause: RootCause
    raw: list[RootCause] = []
    trials: list[str] = []

    @property
    def count(self) -> int:
        return len(self.trials)


class Groups:
    """The findings of a campaign by cause, in the order in which they were settled.

    The order in which trials are seen decides nothing but the order in which they are listed: ids come from causes
    alone.
    """

    def __init__(self) -> None:
        self._groups: dict[RootCause, Group] = {}
        self._canonical: dict[RootCause, RootCause] = {}
        self._pending: dict[RootCause, list[str]] = {}

    def see(self, raw: RootCause, trial: str) -> Sight:
        """A trial showed this cause. After "new", `settle` (or `give_up`) must follow for it."""
        if (canonical := self._canonical.get(raw)) is not None:
            _add(self._groups[canonical].trials, trial)
            return "known"
        if raw in self._pending:
            _add(self._pending[raw], trial)
            return "pending"
        self._pending[raw] = [trial]
        return "new"

    def match(self, raw: RootCause) -> Group | None:
        """The group that violations of this raw cause belong to, as far as it is known."""
        canonical = self._canonical.get(raw)
        return None if canonical is None else self._groups[canonical]

    def settle(self, raw: RootCause, canonical: RootCause) -> tuple[Group, bool]:
        """A schedule of cause `raw` shrank to one of cause `canonical`. Returns its group, and whether that is a new
        one.

        Every trial that was seen with `raw` meanwhile counts for it, and so will those to come. A cause that was
        canonical once stays so, and is its own.
        """
        canonical = self._canonical.get(canonical, canonical)
        fresh = canonical not in self._groups
        group = self._groups.setdefault(canonical, Group(identity(canonical), canonical))
        for cause in (raw, canonical):
            self._canonical.setdefault(cause, canonical)
            if cause not in group.raw:
                group.raw.append(cause)
        for trial in self._pending.pop(raw, []):
            _add(group.trials, trial)
        return group, fresh

    def give_up(self, raw: RootCause) -> list[str]:
        """The cause can't be settled (it never showed again); a later trial may try anew. Returns the trials that
        showed it."""
        return self._pending.pop(raw, [])

    @property
    def found(self) -> tuple[Group, ...]:
        return tuple(self._groups.values())

    def restore(self, groups: list[Group]) -> None:
        """Take up what an interrupted campaign had settled."""
        for group in groups:
            self._groups[group.cause] = group
            for cause in (group.cause, *group.raw):
                self._canonical[cause] = group.cause


def identity(cause: RootCause) -> str:
    """The finding's id, such as newest-complete-1a2b3c4d: equal for equal causes, on every machine."""
    digest = hashlib.blake2b(msgspec.json.encode(cause, order="deterministic"), digest_size=4).hexdigest()
    return f"{cause.invariant}-{digest}"


def faces(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Findings by what is behind them, in the given order: of one shrunk schedule whose faults struck at one place it is the same,
    whatever it shows as."""
    found: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        cause = finding.cause
        schedule = msgspec.json.encode(finding.shrunk, order="deterministic")
        found.setdefault((schedule, cause.stage, cause.operation, cause.file_pattern), []).append(finding)
    return list(found.values())


def _add(trials: list[str], trial: str) -> None:
    if trial not in trials:
        trials.append(trial)
