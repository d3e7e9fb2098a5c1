"""`torch-save`: a torn or mixed set of files is noticed by all ranks."""

from __future__ import annotations

import shutil

import pytest

from chaosckpt.targets import Chosen, Intent, Nothing
from chaosckpt.targets.torch_save import TorchSave
from tests.targets.target_job import TargetJob


@pytest.mark.parametrize("length", [0, 2, 500, 5000, -1])
def test_a_torn_file_is_refused_under_resume_and_passed_over_at_the_start(tmp_path, length):
    """All ranks alike, and the text says which rank found what."""
    target_job = TargetJob(tmp_path, TorchSave)
    target_job.train()
    torn = target_job.shared / "rank-1.pt"
    torn.write_bytes(torn.read_bytes()[:length])
    for failure in target_job.recover_outcomes().failures:
        assert "rank 0 found step 4 of attempt 0 by 2 ranks, rank 1 found a torn file" in failure.text
    assert {outcome.answer for outcome in target_job.recover(intent=Intent.START)} == {Nothing()}


def test_files_of_two_saves_are_refused(tmp_path):
    """Each file is whole and they are of different steps: no rank goes on."""
    target_job = TargetJob(tmp_path, TorchSave)
    target_job.train(last=2)
    older = tmp_path / "older.pt"
    shutil.copy(target_job.shared / "rank-1.pt", older)
    target_job.train(attempt=1, start=Intent.RESUME)
    assert {outcome.answer for outcome in target_job.recover(attempt=2)} == {Chosen(4)}
    shutil.copy(older, target_job.shared / "rank-1.pt")
    assert len(target_job.recover_outcomes(attempt=2).failures) == 2
