"""The oracle: what a trial's journal proves about the subject. Pure: it starts no process and reads no storage."""

from chaosckpt.oracle.cause import root_cause
from chaosckpt.oracle.explanation import explain
from chaosckpt.oracle.invariant import Invariant, NotJudged
from chaosckpt.oracle.judgement import check
from chaosckpt.oracle.view import TrialView

__all__ = ["Invariant", "NotJudged", "TrialView", "check", "explain", "root_cause"]
