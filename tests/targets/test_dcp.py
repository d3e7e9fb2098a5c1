"""`dcp`: remains of a crash neither count as a checkpoint nor stand in a later save's way."""

from __future__ import annotations

import pytest

from chaosckpt.targets import Chosen, Intent
from chaosckpt.targets.dcp import Dcp
from chaosckpt.targets.dcp_async import DcpAsync
from tests.targets.target_job import TargetJob, files_under


@pytest.mark.parametrize("cls", [Dcp, DcpAsync])
def test_a_directory_without_metadata_is_passed_over_and_saved_again(tmp_path, cls):
    """With step 4 interrupted, step 2 is chosen; then step 4 is saved over what was left, a stray rank's shard included."""
    target_job = TargetJob(tmp_path, cls)
    target_job.train()
    torn = target_job.shared / "step-000004"
    (torn / ".metadata").unlink()
    (torn / "__1_0.distcp").write_bytes(b"torn")
    (torn / "__7_0.distcp").write_bytes(b"from a larger world")
    assert {outcome.answer for outcome in target_job.recover()} == {Chosen(2)}
    second = target_job.train(attempt=1, start=Intent.RESUME)
    assert not (torn / "__7_0.distcp").exists()
    for before, after in zip(second, target_job.recover(attempt=2), strict=True):
        assert after.answer == Chosen(4)
        assert after.digest == before.digests[4]


@pytest.mark.parametrize("cls", [Dcp, DcpAsync])
def test_keep_retires_the_oldest(tmp_path, cls):
    """Only the newest `keep` directories stay."""
    target_job = TargetJob(tmp_path, cls, keep=1)
    target_job.train(last=6)
    assert {path.split("/")[0] for path in files_under(target_job.shared)} == {"step-000006"}


def test_threads_write_as_many_files(tmp_path):
    """The option reaches DCP's writer."""
    target_job = TargetJob(tmp_path, Dcp, threads=4)
    target_job.train(last=2)
    assert len([path for path in files_under(target_job.shared) if path.endswith(".distcp")]) == 8
    assert {outcome.answer for outcome in target_job.recover()} == {Chosen(2)}


def test_a_torn_shard_is_an_error_on_every_rank_that_names_the_directory(tmp_path):
    """When what `.metadata` vouches for can't be loaded, no rank goes on."""
    target_job = TargetJob(tmp_path, Dcp)
    target_job.train()
    shard = target_job.shared / "step-000004" / "__1_0.distcp"
    shard.write_bytes(shard.read_bytes()[:100])
    for failure in target_job.recover_outcomes().failures:
        assert failure.kind == "CheckpointError"
        assert str(shard.parent) in failure.text
