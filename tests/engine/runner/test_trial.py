"""Trials: who watches storage sees it between the attempts, as the next one will find it, whatever the subject."""

from __future__ import annotations

from pathlib import Path

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.trial import run_trial
from chaosckpt.engine.subjects import subject_of
from chaosckpt.faults.local_storage_loss import LocalStorageLoss
from chaosckpt.model import journal as j
from chaosckpt.model.schedule import AttemptPlan, Schedule
from tests.engine.case import PATIENT, Case, landed


def test_storage_is_seen_before_each_attempt_and_after_the_last(two_tier: Case) -> None:
    """Goal: what is injected between two attempts has been injected by then, and no rank runs."""
    schedule = Schedule((AttemptPlan((two_tier.cut_after_commit(2),)), AttemptPlan((LocalStorageLoss(),))))
    started: list[int] = []
    seen: list[tuple[int, int, int]] = []

    def write(event: j.AnyEvent) -> None:
        if isinstance(event, j.AttemptStarted):
            started.append(event.attempt)

    def observe(number: int, arena: Arena) -> None:
        assert started == list(range(number))
        tiers = arena.tiers(0)
        seen.append((number, _files(tiers["local"]), _files(tiers["shared"])))

    subject = subject_of(two_tier.scenario)
    journal = run_trial(
        subject, schedule, two_tier.arena, trial="1:0", deadlines=PATIENT, write=write, observe_storage=observe
    )
    assert [event.kind for event in landed(journal)] == ["cut", "local-storage-loss"]
    assert [number for number, _, _ in seen] == [0, 1, 2, 3]
    assert seen[0][1:] == (0, 0)
    assert seen[1][1] == 0, "the loss is injected before attempt 1"
    assert seen[1][2] > 0
    assert min(seen[3][1:]) > 0


def _files(directory: str) -> int:
    return sum(path.is_file() for path in Path(directory).rglob("*"))
