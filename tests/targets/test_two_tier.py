"""`two-tier`: what is acknowledged where, and what recovery takes from which tier."""

from __future__ import annotations

import os
import shutil

import pytest

from chaosckpt.model.digest import combine
from chaosckpt.targets import Chosen, Intent, Target
from chaosckpt.targets.two_tier import TwoTier
from tests.targets.target_job import TargetJob, files_under


def crashed(target_job: TargetJob, **options) -> list:
    """Step 2 in both tiers, step 4 acknowledged locally only, and then the job is gone without its orderly exit."""
    return target_job.train(before_exit=lambda target: None, **options)


def test_a_save_is_acknowledged_by_one_tier_after_the_other(tmp_path):
    """First `local`, then `shared`."""
    target_job = TargetJob(tmp_path, TwoTier)
    assert [life.levels for life in target_job.train()] == [[["local", "shared"], ["local"]]] * 2


def test_after_a_process_crash_the_local_tier_is_newest(tmp_path):
    """Step 4 was never on shared storage, and is recovered whole from the nodes."""
    target_job = TargetJob(tmp_path, TwoTier)
    saved = crashed(target_job)
    assert not any(path.startswith("step-000004-attempt-000-of-2/") for path in files_under(target_job.shared))
    for before, after in zip(saved, target_job.recover(), strict=True):
        assert after.answer == Chosen(4)
        assert after.digest == before.digests[4]


@pytest.mark.parametrize("lost", [0, 1])
def test_after_a_node_loss_all_ranks_fall_back_together(tmp_path, lost):
    """One node's storage is empty: step 2, which every rank can load, is chosen by all, also where step 4 is at hand."""
    target_job = TargetJob(tmp_path, TwoTier)
    saved = crashed(target_job)
    shutil.rmtree(target_job.local(lost))
    for before, after in zip(saved, target_job.recover(), strict=True):
        assert after.answer == Chosen(2)
        assert after.digest == before.digests[2]


def test_a_partial_local_copy_does_not_count(tmp_path):
    """A rank that has not its own file of step 4 can't load it, so nobody does."""
    target_job = TargetJob(tmp_path, TwoTier)
    crashed(target_job)
    (tmp_path / "node-1" / "step-000004-attempt-000-of-2" / "rank-1.pt").unlink()
    assert {outcome.answer for outcome in target_job.recover()} == {Chosen(2)}


@pytest.mark.parametrize("world_size", [1, 3])
def test_another_world_size_takes_the_local_tier_from_whoever_has_it(tmp_path, world_size):
    """Nodes come and go: step 4, which one node still holds, reaches all ranks of the new world."""
    target_job = TargetJob(tmp_path, TwoTier)
    saved = crashed(target_job)
    outcomes = target_job.recover(world_size=world_size)
    assert {outcome.answer for outcome in outcomes} == {Chosen(4)}
    expected = combine([life.digests[4] for life in saved]).shared_parts()
    assert combine([outcome.digest for outcome in outcomes]).shared_parts() == expected


def test_two_attempts_at_one_step_are_not_mixed(tmp_path):
    """Attempt 0's step 4 survives on node 0, attempt 1 saves step 4 again: all ranks take attempt 1's."""
    target_job = TargetJob(tmp_path, TwoTier)
    crashed(target_job)
    shutil.rmtree(target_job.local(1))
    crashed(target_job, attempt=1, start=Intent.RESUME)
    assert [outcome.digest.stamp for outcome in target_job.recover(attempt=2)] == [(1, 4, 0, 2), (1, 4, 1, 2)]


def test_what_is_superseded_is_cleared_away_in_both_tiers(tmp_path):
    """After an orderly end shared storage holds two generations, each node one, and nothing temporary is left."""
    target_job = TargetJob(tmp_path, TwoTier)
    target_job.train(last=4, before_exit=lambda target: None)
    target_job.train(attempt=1, start=Intent.RESUME, last=8)
    assert sorted(os.listdir(target_job.shared)) == ["step-000006-attempt-001-of-2", "step-000008-attempt-001-of-2"]
    for node in (0, 1):
        assert os.listdir(target_job.local(node)) == ["step-000008-attempt-001-of-2"]


def test_two_ranks_of_one_node_share_its_storage(tmp_path):
    """The node's first rank writes the shared part for both, and each its own."""
    target_job = TargetJob(tmp_path, TwoTier)
    target_job.ranks_on_node = 2
    saved = crashed(target_job)
    for before, after in zip(saved, target_job.recover(), strict=True):
        assert after.answer == Chosen(4)
        assert after.digest == before.digests[4]
    assert os.listdir(tmp_path / "node-0" / "step-000004-attempt-000-of-2")


def test_the_next_save_of_a_peer_is_left_alone(tmp_path):
    """A node's first rank that clears up after a drain must not clear away what its peer has begun to save since."""
    target_job = TargetJob(tmp_path, TwoTier)
    begun = "step-000006-attempt-000-of-2"

    def end(target: Target) -> None:
        (target.local / begun).mkdir()
        target.close()

    target_job.train(before_exit=end)
    for node in (0, 1):
        assert sorted(os.listdir(target_job.local(node))) == ["step-000004-attempt-000-of-2", begun]
