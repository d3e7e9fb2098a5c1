"""The oracle: what a trial's journal proves about the subject. Pure: it starts no process and reads no storage.

`facts/` derives what the invariants ask for from the journal, `invariants/` has one property a file, `check` asks them all,
`explain` tells the reasoning, `blame` names the fault behind a violation, and `phrasing` says it in words.
"""

from chaosckpt.oracle.blame import root_cause, same_failure
from chaosckpt.oracle.check import check, gravity
from chaosckpt.oracle.explain import explain
from chaosckpt.oracle.facts.command import CommandView
from chaosckpt.oracle.facts.view import TargetView
from chaosckpt.oracle.invariant import Invariant, NotJudged

__all__ = [
    "CommandView",
    "Invariant",
    "NotJudged",
    "TargetView",
    "check",
    "explain",
    "gravity",
    "root_cause",
    "same_failure",
]
