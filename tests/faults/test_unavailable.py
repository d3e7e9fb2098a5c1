"""A tier that doesn't answer for a while."""

from __future__ import annotations

from chaosckpt.faults.unavailable import Unavailable
from chaosckpt.model.fault import Hold, Memory
from tests.faults.operations import operation, trigger


def test_everything_waits_until_nobody_can_go_on(job):
    """No clock: away until all are at rest without it, then back for all at once."""
    Unavailable(trigger()).inject(job)
    assert job.acts == ["await rest", "activate", "await rest", "deactivate", "resume"]


def test_every_operation_on_its_tier_waits():
    """Reading and writing, of every rank; other tiers answer."""
    fault, away = Unavailable(trigger()), Memory(took_effect=True)
    for op in ("write", "read", "stat", "list", "rename", "close"):
        assert fault.decide(operation(op), away) == Hold()
    assert fault.decide(operation("write", "local:f"), away) is None
    assert fault.decide(operation("write"), Memory()) is None
