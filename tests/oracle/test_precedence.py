from __future__ import annotations

import re
from pathlib import Path

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.precedence import BUILT_IN, ranked
from chaosckpt.plugins import invariants

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "truth.md"
ORDER = (
    "complete-only rank-agreement report-truth full-state data-once trajectory ack-truth newest-complete never-bare "
    "clear-failure bounded-saves progress tidy"
).split()


def test_order_of_precedence() -> None:
    """Wrong state first, then a lost checkpoint, then how the job ended; the page on truth has the same table."""
    assert [invariant.name for invariant in BUILT_IN] == ORDER
    assert re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE) == ORDER


def test_built_ins_are_the_registered_ones() -> None:
    """Each built-in invariant is registered under its own name."""
    found = invariants()
    assert {name: found[name] for name in ORDER} == {invariant.name: invariant for invariant in BUILT_IN}


def test_ranking() -> None:
    """By precedence, then the earliest attempt, then the lowest rank; invariants of plugins come last."""
    told = [
        Violation(invariant="of-a-plugin", sentence="", attempt=0),
        Violation(invariant="tidy", sentence="", attempt=0),
        Violation(invariant="data-once", sentence="", attempt=2, rank=0),
        Violation(invariant="data-once", sentence="", attempt=1, rank=1),
        Violation(invariant="data-once", sentence="", attempt=1, rank=0),
    ]
    assert ranked(told) == list(reversed(told))
