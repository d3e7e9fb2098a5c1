"""Findings: violations grouped by root cause, with the schedule shrunk to its essence."""

from __future__ import annotations

import re

import msgspec

from chaosckpt.model.verdict import Violation


class RootCause(msgspec.Struct, frozen=True, order=True):
    """What makes two violations one finding: the invariant, and where and how the guilty fault struck."""

    invariant: str
    stage: str = ""
    operation: str = ""
    file_pattern: str = ""
    error_type: str = ""

    def __str__(self) -> str:
        where = " ".join(part for part in (self.stage, self.operation, self.file_pattern) if part)
        return " / ".join(part for part in (self.invariant, where, self.error_type) if part)


def file_pattern(path: str) -> str:
    """The kind of file that a path names: every run of digits reads `#`."""
    return re.sub(r"\d+", "#", path)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One root cause met in a campaign. `reproduced` of `replays` replays of the shrunk schedule showed it again."""

    id: str
    cause: RootCause
    violation: Violation
    trial: str
    """The first trial that showed it, `SEED:INDEX`."""
    count: int
    schedule: dict[str, object]
    shrunk: dict[str, object]
    faults: tuple[str, ...]
    """The shrunk faults in words."""
    reproduced: int
    replays: int
    shrink_trials: int = 0
