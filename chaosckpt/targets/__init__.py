"""Checkpointers under test, and the protocol that they implement. Authors of targets import from here."""

from chaosckpt.model.guarantee import Guarantee
from chaosckpt.targets.api import (
    Ack,
    CheckpointError,
    Chosen,
    Context,
    Done,
    Intent,
    Level,
    Nothing,
    Pending,
    Target,
)

__all__ = [
    "Ack",
    "CheckpointError",
    "Chosen",
    "Context",
    "Done",
    "Guarantee",
    "Intent",
    "Level",
    "Nothing",
    "Pending",
    "Target",
]
