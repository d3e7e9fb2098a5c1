"""Operations that take long."""

from __future__ import annotations

from chaosckpt.faults.latency import Latency
from tests.faults.operations import trigger


def test_latency_lets_the_job_go_on_and_then_lets_go(job):
    """The operation is held while its peers run, for the time given."""
    Latency(trigger(), 50).inject(job)
    assert job.acts == ["run for 0.05", "resume"]
