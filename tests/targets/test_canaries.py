"""Each canary has the bug that it says it has, and only that one."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaosckpt.targets import Chosen, Intent, Nothing, Target
from chaosckpt.targets.canaries.asynchronous import EarlyAcknowledgement, LiveSnapshot, Unawaited, Unbounded
from chaosckpt.targets.canaries.choice import Highest, Oldest, OwnNewest, YoungestKept
from chaosckpt.targets.canaries.errors_ignored import (
    DrainErrorLost,
    ErrorRetired,
    OneNotices,
    SpaceIgnored,
    ThreadErrorLost,
    UnreadableDeleted,
)
from chaosckpt.targets.canaries.markers import EarlyMarker, Misreport, PointerEarly, PointerInPlace
from chaosckpt.targets.canaries.mixing import Mixed, StaleShards, Torn
from chaosckpt.targets.canaries.refusal import ExitZero, Hang, SilentStart, Trusting
from chaosckpt.targets.canaries.retention import Blocked, InPlace, Litter, RetiresFirst
from chaosckpt.targets.canaries.training_state import (
    AddedPositionLost,
    AddedRngCopied,
    AddedRngUnset,
    OptimizerLost,
    ResizedPosition,
    RngLost,
    SamplerLost,
    SaveAdvances,
    SaveDraws,
    SchedulerLost,
    SharedRng,
)
from tests.targets.target_job import TargetJob, tutorial_target
from tests.training.ranks import Killed

EAGER = tutorial_target("my_eager_target", "MyEagerTarget")
SOUND_WITHOUT_FAULTS: list[type[Target]] = [
    AddedPositionLost,
    AddedRngCopied,
    AddedRngUnset,
    Blocked,
    DrainErrorLost,
    EarlyAcknowledgement,
    EarlyMarker,
    ErrorRetired,
    ExitZero,
    Hang,
    Highest,
    InPlace,
    Litter,
    LiveSnapshot,
    Misreport,
    Mixed,
    OneNotices,
    OwnNewest,
    PointerEarly,
    PointerInPlace,
    ResizedPosition,
    RetiresFirst,
    SilentStart,
    SpaceIgnored,
    StaleShards,
    ThreadErrorLost,
    Torn,
    Trusting,
    Unawaited,
    Unbounded,
    UnreadableDeleted,
    YoungestKept,
    EAGER,
]


def interrupted(target_job: TargetJob) -> Path:
    """Make the finished step 4 look as if the save had been killed before its commit."""
    temporary = target_job.shared / "step-000004.tmp"
    (target_job.shared / "step-000004").rename(temporary)
    return temporary


@pytest.mark.parametrize("cls", SOUND_WITHOUT_FAULTS, ids=lambda cls: cls.name or cls.__name__)
def test_without_a_fault_it_passes_for_correct(tmp_path, cls):
    """Its bug needs a fault to show: a fault-free save and restart brings everything back."""
    target_job = TargetJob(tmp_path, cls)
    for before, after in zip(target_job.train(), target_job.recover(), strict=True):
        assert after.answer == Chosen(4)
        assert after.digest == before.digests[4]
        assert after.losses == before.losses


@pytest.mark.parametrize(
    ("cls", "parts"),
    [
        (OptimizerLost, {"optimizer", "optimizer_scalars"}),
        (SchedulerLost, {"scheduler"}),
        (SamplerLost, {"sampler"}),
        (SharedRng, {"rng"}),
        (RngLost, {"rng"}),
    ],
)
def test_one_part_of_the_state_does_not_come_back(tmp_path, cls, parts):
    """Exactly the part that the canary's name says differs after a plain restart, on rank 1 at least."""
    target_job = TargetJob(tmp_path, cls)
    before, after = target_job.train()[1].digests[4], target_job.recover()[1].digest
    assert {name for name in before.__struct_fields__ if getattr(before, name) != getattr(after, name)} == parts


@pytest.mark.parametrize("cls", [SaveAdvances, SaveDraws])
def test_a_save_that_meddles_shows_in_what_is_trained_after_it(tmp_path, cls):
    """What was saved comes back whole, and a job that restarts from it trains otherwise than the one that went on."""
    target_job = TargetJob(tmp_path, cls)
    for before, after in zip(target_job.train(), target_job.recover(), strict=True):
        assert after.digest == before.digests[4]
        assert after.losses != before.losses


def test_oldest_chooses_the_oldest(tmp_path):
    """Step 2 although step 4 is complete."""
    target_job = TargetJob(tmp_path, Oldest)
    saved = target_job.train()
    for before, after in zip(saved, target_job.recover(), strict=True):
        assert after.answer == Chosen(2)
        assert after.digest == before.digests[2]


def test_in_place_loses_what_it_had(tmp_path):
    """A torn file is all there is, and refused; the canary claims to survive the crash."""
    target_job = TargetJob(tmp_path, InPlace)
    target_job.train()
    (target_job.shared / "rank-0.pt").write_bytes(b"torn")
    assert len(target_job.recover_outcomes().failures) == 2
    assert "process-crash" in InPlace.guarantees


@pytest.mark.parametrize("content", [None, b"", b"torn"])
def test_torn_loads_what_there_is(tmp_path, content):
    """Step 4 is chosen with a parameter missing, empty or torn, which keeps its initial value."""
    target_job = TargetJob(tmp_path, Torn)
    saved = target_job.train()
    damaged = target_job.shared / "step-000004" / "6.bias.pt"
    damaged.unlink()
    if content is not None:
        damaged.write_bytes(content)
    for before, after in zip(saved, target_job.recover(), strict=True):
        assert after.answer == Chosen(4)
        differing = {name for name, part in after.digest.params.items() if part != before.digests[4].params[name]}
        assert differing == {"6.bias"}


def test_mixed_loads_two_generations(tmp_path):
    """With one parameter still of step 2, the rest of step 4 is loaded beside it."""
    target_job = TargetJob(tmp_path, Mixed)
    target_job.train(last=2)
    old = (target_job.shared / "6.bias.pt").read_bytes()
    saved = target_job.train()
    (target_job.shared / "6.bias.pt").write_bytes(old)
    for before, after in zip(saved, target_job.recover(), strict=True):
        assert after.digest.params["6.bias"] == before.digests[2].params["6.bias"]
        assert after.digest.params["0.bias"] == before.digests[4].params["0.bias"]


def test_misreport_says_one_step_and_loads_another(tmp_path):
    """With step 4 interrupted, step 2 is loaded and step 4 reported."""
    target_job = TargetJob(tmp_path, Misreport)
    target_job.train()
    interrupted(target_job)
    assert [(outcome.answer, outcome.digest.step) for outcome in target_job.recover()] == [(Chosen(4), 2)] * 2


def test_own_newest_lets_the_ranks_part(tmp_path):
    """Rank 1 without its file of step 4 resumes step 2, rank 0 step 4."""
    target_job = TargetJob(tmp_path, OwnNewest)
    target_job.train()
    (target_job.shared / "rank-1" / "step-000004").unlink()
    assert [outcome.answer for outcome in target_job.recover()] == [Chosen(4), Chosen(2)]


def test_silent_start_starts_over_under_resume(tmp_path):
    """An empty storage is no error to it."""
    assert {outcome.answer for outcome in TargetJob(tmp_path, SilentStart).recover()} == {Nothing()}


def test_exit_zero_ends_as_if_all_were_well(tmp_path):
    """An empty storage ends every rank by SystemExit(0)."""
    failures = TargetJob(tmp_path, ExitZero).recover_outcomes().failures
    assert [(failure.kind, failure.text) for failure in failures] == [("SystemExit", "0")] * 2


def test_hang_waits_for_a_partial_directory(tmp_path, monkeypatch):
    """With step 4 interrupted no rank ends; the deadline has to."""
    target_job = TargetJob(tmp_path, Hang)
    target_job.train()
    interrupted(target_job)
    monkeypatch.setattr("tests.training.ranks.DEADLINE_SECONDS", 3)
    assert target_job.recover_outcomes().outcomes == [Killed(-9)] * 2


def test_blocked_fails_at_the_same_step_every_time(tmp_path):
    """Recovery is right, and the save of the interrupted step can't be made."""
    target_job = TargetJob(tmp_path, Blocked)
    target_job.train()
    interrupted(target_job)
    assert {outcome.answer for outcome in target_job.recover()} == {Chosen(2)}
    with pytest.raises(AssertionError, match="FileExistsError"):
        target_job.train(attempt=1, start=Intent.RESUME)


def test_the_tutorial_s_bug_is_an_early_marker(tmp_path):
    """Rank 1 killed between the marker and the end of its file leaves a marked directory that can't be loaded."""
    target_job = TargetJob(tmp_path, EAGER)
    target_job.train()
    (target_job.shared / "step-4" / "rank-1.pt").write_bytes(b"torn")
    for failure in target_job.recover_outcomes().failures:
        assert "rank-" in failure.text
