"""`torch-save-atomic`: only a named directory counts, and what a crash leaves is cleared away."""

from __future__ import annotations

from chaosckpt.targets import Chosen, Intent
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from tests.targets.target_job import TargetJob, files_under


def test_a_temporary_directory_is_passed_over_and_cleared_by_the_next_save(tmp_path):
    """An uncommitted step 4 is not chosen, is saved again, and leaves nothing behind; so do the remains of a retirement."""
    target_job = TargetJob(tmp_path, TorchSaveAtomic)
    target_job.train()
    (target_job.shared / "step-000004").rename(target_job.shared / "step-000004.tmp")
    (target_job.shared / "step-000000.old").mkdir()
    assert {outcome.answer for outcome in target_job.recover()} == {Chosen(2)}
    target_job.train(attempt=1, start=Intent.RESUME)
    assert {outcome.answer for outcome in target_job.recover(attempt=2)} == {Chosen(4)}
    assert sorted(path.name for path in target_job.shared.iterdir()) == ["step-000002", "step-000004"]


def test_a_complete_step_can_be_saved_again(tmp_path):
    """Another attempt's save of the same step replaces it, and the stamp says whose it is."""
    target_job = TargetJob(tmp_path, TorchSaveAtomic)
    target_job.train()
    target_job.train(attempt=1)
    assert [outcome.digest.stamp for outcome in target_job.recover(attempt=2)] == [(1, 4, 0, 2), (1, 4, 1, 2)]


def test_keep_bounds_what_is_kept(tmp_path):
    """The newest two by default, all with 0."""
    target_job = TargetJob(tmp_path, TorchSaveAtomic)
    target_job.train(last=6)
    assert {path.split("/")[0] for path in files_under(target_job.shared)} == {"step-000004", "step-000006"}
    (tmp_path / "all").mkdir()
    target_job = TargetJob(tmp_path / "all", TorchSaveAtomic, keep=0)
    target_job.train(last=6)
    assert len(list(target_job.shared.iterdir())) == 3


def test_a_torn_file_is_an_error_on_every_rank(tmp_path):
    """Damage of one rank's file stops all, and the text names the directory."""
    target_job = TargetJob(tmp_path, TorchSaveAtomic)
    target_job.train()
    (target_job.shared / "step-000004" / "rank-1.pt").write_bytes(b"torn")
    for failure in target_job.recover_outcomes().failures:
        assert "step-000004" in failure.text
        assert "rank 1" in failure.text
