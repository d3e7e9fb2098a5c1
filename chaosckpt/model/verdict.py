"""Verdicts: what the oracle says of one trial, with the sentence that a person needs."""

from __future__ import annotations

from typing import Literal

import msgspec

Outcome = Literal["pass", "violation", "inconclusive"]


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One broken invariant. `evidence` are indices of journal events that show it.

    `error_type` is the class of the exception seen, or a short word for what is wrong where there was none
    (`mixed-generations`, `wrong-step`, `lost-optimizer`): it tells root causes apart. `path` is the file that the last fault struck.
    """

    invariant: str
    sentence: str
    attempt: int
    rank: int | None = None
    step: int | None = None
    path: str | None = None
    expected: str = ""
    seen: str = ""
    error_type: str = ""
    evidence: tuple[int, ...] = ()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one trial: at most one primary violation (by fixed precedence), the others listed under it."""

    outcome: Outcome
    primary: Violation | None = None
    others: tuple[Violation, ...] = ()
    reason: str = ""
    """Why the trial is inconclusive, in words; beside a violation, which invariants broke while they judged."""
    judged: tuple[str, ...] = ()
    """The invariants that were judged (not merely skipped for lack of a subject)."""
    unjudged: tuple[str, ...] = ()
    """Of a command: the invariants that were not judged, each with its reason and, where one would help, the option, in words."""
    gaps: tuple[str, ...] = ()
    """The invariants that this trial ought to have judged and could not, each with a reason that is the same in all such trials."""
