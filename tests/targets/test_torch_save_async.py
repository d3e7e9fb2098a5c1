"""`torch-save-async`: what is written is what was held when `save` was called, and an error of the thread is everybody's."""

from __future__ import annotations

from chaosckpt.model.digest import StateDigest
from chaosckpt.targets import Chosen
from chaosckpt.targets.torch_save_async import TorchSaveAsync
from chaosckpt.training.digest import digest
from chaosckpt.training.loop import train_step
from tests.targets.target_job import TargetJob
from tests.training.ranks import job_of, run_ranks


def test_training_on_does_not_reach_into_the_save(tmp_path):
    """Saves follow each other without a wait while parameters change in place; the last one holds its own step."""
    target_job = TargetJob(tmp_path, TorchSaveAsync)

    def life(rank: int) -> StateDigest:
        job, target = job_of(2, rank), target_job.target(rank, 2, 0)
        for step in range(1, 4):
            train_step(job)
            held = digest(job.state)
            target.save(job.state, step)
        train_step(job)
        target.close()
        return held

    saved = run_ranks(2, life).results
    assert sorted(path.name for path in target_job.shared.iterdir()) == ["step-000002", "step-000003"]
    for before, after in zip(saved, target_job.recover(), strict=True):
        assert (after.answer, after.digest) == (Chosen(3), before)


def test_an_error_of_a_thread_is_raised_by_wait_on_every_rank(tmp_path):
    """A save whose files could not be written is neither committed nor acknowledged."""
    target_job = TargetJob(tmp_path, TorchSaveAsync)

    class Unlucky(TorchSaveAsync):
        def write(self, directory, shared_part, own_part):
            if self.rank == 1:
                # In one operation: the other rank is writing into it.
                directory.rename(directory.with_name("gone"))
            super().write(directory, shared_part, own_part)

    target_job.cls = Unlucky

    def life(rank: int) -> None:
        job, target = job_of(2, rank), target_job.target(rank, 2, 0)
        train_step(job)
        target.save(job.state, 1).wait()

    for failure in run_ranks(2, life).failures:
        assert failure.kind == "CheckpointError"
        assert "rank 1: FileNotFoundError" in failure.text
    assert not (target_job.shared / "step-000001").exists()
