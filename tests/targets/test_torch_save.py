"""`torch-save`: a torn or mixed set of files is noticed by all ranks."""

from __future__ import annotations

import shutil

import pytest

from chaosckpt.targets import Chosen, Intent, Nothing
from chaosckpt.targets.torch_save import TorchSave
from tests.targets.lives import Scene


@pytest.mark.parametrize("length", [0, 2, 500, 5000, -1])
def test_a_torn_file_is_refused_under_resume_and_passed_over_at_the_start(tmp_path, length):
    """All ranks alike, and the text says which rank found what."""
    scene = Scene(tmp_path, TorchSave)
    scene.train()
    torn = scene.shared / "rank-1.pt"
    torn.write_bytes(torn.read_bytes()[:length])
    for failure in scene.recover_outcomes().failures:
        assert "rank 0 found step 4 of attempt 0 by 2 ranks, rank 1 found a torn file" in failure.text
    assert {outcome.answer for outcome in scene.recover(intent=Intent.START)} == {Nothing()}


def test_files_of_two_saves_are_refused(tmp_path):
    """Each file is whole and they are of different steps: no rank goes on."""
    scene = Scene(tmp_path, TorchSave)
    scene.train(last=2)
    older = tmp_path / "older.pt"
    shutil.copy(scene.shared / "rank-1.pt", older)
    scene.train(attempt=1, start=Intent.RESUME)
    assert {outcome.answer for outcome in scene.recover(attempt=2)} == {Chosen(4)}
    shutil.copy(older, scene.shared / "rank-1.pt")
    assert len(scene.recover_outcomes(attempt=2).failures) == 2
