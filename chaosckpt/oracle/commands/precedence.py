"""Which invariants a command is judged by, and which of several violations is the primary one."""

from __future__ import annotations

from collections.abc import Iterable

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.commands.invariant import CommandInvariant
from chaosckpt.oracle.commands.invariants.clear_failure import clear_failure
from chaosckpt.oracle.commands.invariants.complete_only import complete_only
from chaosckpt.oracle.commands.invariants.data_once import data_once
from chaosckpt.oracle.commands.invariants.full_state import full_state
from chaosckpt.oracle.commands.invariants.never_bare import never_bare
from chaosckpt.oracle.commands.invariants.newest_complete import newest_complete
from chaosckpt.oracle.commands.invariants.progress import progress
from chaosckpt.oracle.commands.invariants.result_equal import result_equal

COMMAND_INVARIANTS: tuple[CommandInvariant, ...] = (
    complete_only,
    full_state,
    data_once,
    newest_complete,
    never_bare,
    result_equal,
    clear_failure,
    progress,
)
"""In the order of precedence: what was wrong about checkpoints comes before what followed from it."""

_ORDER = {invariant.name: place for place, invariant in enumerate(COMMAND_INVARIANTS)}


def ranked(violations: Iterable[Violation]) -> list[Violation]:
    """The primary violation first: by precedence, then the earliest attempt."""
    return sorted(violations, key=lambda found: (_ORDER[found.invariant], found.attempt, found.sentence))
