"""SIGTERM with grace."""

from __future__ import annotations

from chaosckpt.faults.sigterm import Sigterm
from tests.faults.operations import trigger


def test_sigterm_gives_grace_before_the_kill(job):
    """Every rank is told first, goes on for the grace, and only then is killed."""
    Sigterm(trigger(), grace_ms=500).inject(job)
    assert job.acts == ["await rest", "terminate [0, 1, 2]", "resume", "run for 0.5", "kill job"]


def test_sigterm_to_one_rank_shrinks_to_all(job):
    """Told to one rank, only that one gets the signal; the simpler fault tells all."""
    fault = Sigterm(trigger(rank=1), everyone=False)
    fault.inject(job)
    assert "terminate [1]" in job.acts
    assert list(fault.simpler()) == [Sigterm(trigger(rank=1))]
