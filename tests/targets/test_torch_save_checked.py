"""`torch-save-checked`: whatever bit of a checkpoint is turned over, it is passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaosckpt.targets import Chosen
from chaosckpt.targets.torch_save_checked import TorchSaveChecked
from tests.targets.target_job import TargetJob


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset % len(content)] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "offset"), [("state.pt", 5000), ("rank-1.pt", 0), ("rank-0.manifest", 3), ("rank-1.manifest", -1)]
)
def test_a_damaged_checkpoint_is_passed_over(tmp_path, name, offset):
    """With one bit of step 4 turned over, in data or in a manifest, step 2 is chosen, and step 4 is not listed."""
    target_job = TargetJob(tmp_path, TorchSaveChecked)
    saved = target_job.train()
    flip(target_job.shared / "step-000004" / name, offset)
    for before, after in zip(saved, target_job.recover(), strict=True):
        assert (after.answer, after.digest) == (Chosen(2), before.digests[2])
    assert [list(audit) for audit in target_job.audit()] == [[2], [2]]
    for failure in target_job.audit_outcomes(asked=[4]).failures:
        assert f"{name} is damaged" in failure.text


def test_a_file_cut_off_is_damage(tmp_path):
    """An empty shared part is passed over like any other."""
    target_job = TargetJob(tmp_path, TorchSaveChecked)
    target_job.train()
    (target_job.shared / "step-000004" / "state.pt").write_bytes(b"")
    assert {outcome.answer for outcome in target_job.recover()} == {Chosen(2)}


def test_a_file_that_is_not_there_fails_the_recovery_instead(tmp_path):
    """It may be there again at the next attempt: nothing older is taken for the newest."""
    target_job = TargetJob(tmp_path, TorchSaveChecked)
    target_job.train()
    (target_job.shared / "step-000004" / "rank-1.pt").unlink()
    for failure in target_job.recover_outcomes().failures:
        assert "rank-1.pt" in failure.text


def test_with_every_checkpoint_damaged_nothing_is_loaded(tmp_path):
    """Recovery refuses, on every rank."""
    target_job = TargetJob(tmp_path, TorchSaveChecked)
    target_job.train()
    for step in (2, 4):
        flip(target_job.shared / f"step-{step:06d}" / "rank-0.pt", 77)
    for failure in target_job.recover_outcomes().failures:
        assert "no complete checkpoint" in failure.text
