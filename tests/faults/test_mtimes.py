"""Modification times that mislead."""

from __future__ import annotations

from chaosckpt.faults.mtimes import Mtimes


def test_times_are_reversed_between_two_attempts(job):
    """On one tier, with what was done as evidence."""
    assert Mtimes().prepare(job) == "what was done"
    assert Mtimes("local", 1).prepare(job) == "what was done"
    assert job.acts == ["mutate shared of None: ReverseTimes", "mutate local of 1: ReverseTimes"]
