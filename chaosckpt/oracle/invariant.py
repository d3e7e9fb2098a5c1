"""What an invariant is: one property of a trial, judged from its journal alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.view import TrialView


@dataclass(frozen=True)
class NotJudged:
    """The trial gave this invariant no subject, for this reason."""

    reason: str


@dataclass(frozen=True)
class Invariant:
    """One property. `holds` says in a sentence when it holds; `judge` returns what breaks it, nothing when it holds.

    `judge` is pure: it reads the view and runs no code of the target. An exception in it makes the trial INCONCLUSIVE.
    """

    name: str
    holds: str
    judge: Callable[[TrialView], list[Violation] | NotJudged]
