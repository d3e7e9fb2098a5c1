"""Checkpointers under test, and the protocol they speak. Authors of targets import from here."""

from chaosckpt.model.guarantee import Guarantee
from chaosckpt.targets.api import (
    Ack,
    Chosen,
    Context,
    Done,
    Intent,
    Level,
    Nothing,
    Pending,
    RecoveryError,
    Target,
)

__all__ = [
    "Ack",
    "Chosen",
    "Context",
    "Done",
    "Guarantee",
    "Intent",
    "Level",
    "Nothing",
    "Pending",
    "RecoveryError",
    "Target",
]
