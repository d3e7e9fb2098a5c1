"""Which invariants are built in, and which of several violations is the primary one."""

from __future__ import annotations

from collections.abc import Iterable

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.invariant import Invariant
from chaosckpt.oracle.invariants.ack_truth import ack_truth
from chaosckpt.oracle.invariants.bounded_saves import bounded_saves
from chaosckpt.oracle.invariants.clear_failure import clear_failure
from chaosckpt.oracle.invariants.complete_only import complete_only
from chaosckpt.oracle.invariants.data_once import data_once
from chaosckpt.oracle.invariants.full_state import full_state
from chaosckpt.oracle.invariants.never_bare import never_bare
from chaosckpt.oracle.invariants.newest_complete import newest_complete
from chaosckpt.oracle.invariants.progress import progress
from chaosckpt.oracle.invariants.rank_agreement import rank_agreement
from chaosckpt.oracle.invariants.report_truth import report_truth
from chaosckpt.oracle.invariants.tidy import tidy
from chaosckpt.oracle.invariants.trajectory import trajectory

BUILT_IN: tuple[Invariant, ...] = (
    complete_only,
    rank_agreement,
    report_truth,
    full_state,
    data_once,
    trajectory,
    ack_truth,
    newest_complete,
    never_bare,
    clear_failure,
    bounded_saves,
    progress,
    tidy,
)
"""In the order of precedence. Wrong state that passes for right comes first, then a loss of the checkpoint, then how
the job ended: the earlier ones usually cause the later ones. Invariants of plugins come after these, by name."""

_ORDER = {invariant.name: place for place, invariant in enumerate(BUILT_IN)}


def ranked(violations: Iterable[Violation]) -> list[Violation]:
    """The primary violation first: by precedence, then the earliest attempt, then the lowest rank."""
    return sorted(
        violations,
        key=lambda v: (
            _ORDER.get(v.invariant, len(_ORDER)),
            v.invariant,
            v.attempt,
            -1 if v.rank is None else v.rank,
            v.sentence,
        ),
    )
