"""`dcp-async`: what is saved is what was held at the save, however training goes on."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import ClassVar

import pytest
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from chaosckpt.model.digest import StateDigest
from chaosckpt.targets import Chosen
from chaosckpt.targets.dcp_async import AsyncSave, DcpAsync, DcpAsyncOverlapping
from chaosckpt.training.digest import digest
from chaosckpt.training.loop import train_step
from tests.targets.target_job import TargetJob
from tests.training.ranks import job_of, run_ranks


class Careless(DcpAsync):
    """Leaves what is in its way, so that the thread fails at it."""

    def clear(self, directory: Path) -> None:
        pass


class Held(DcpAsync):
    """Its writers wait for a word."""

    go_on: ClassVar[threading.Event] = threading.Event()

    def writer(self, directory: Path) -> FileSystemWriter:
        return HeldWriter(directory)


class HeldWriter(FileSystemWriter):
    """Writes when it is let."""

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        Held.go_on.wait()
        return super().write_data(plan, planner)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
@pytest.mark.parametrize("cls", [DcpAsync, DcpAsyncOverlapping])
def test_training_on_does_not_reach_into_the_save(tmp_path, cls, strategy):
    """Saves follow each other without a wait while parameters change in place; each holds its own step."""
    target_job = TargetJob(tmp_path, cls, strategy)

    def life(rank: int) -> StateDigest:
        job, target = job_of(2, rank, strategy=strategy), target_job.target(rank, 2, 0)
        for step in range(1, 5):
            train_step(job)
            held = digest(job.state)
            target.save(job.state, step)
        train_step(job)
        target.close()
        return held

    saved = run_ranks(2, life).results
    assert len(list(target_job.shared.glob("step-*/.metadata"))) == 4
    for before, after in zip(saved, target_job.recover(), strict=True):
        assert after.answer == Chosen(4)
        assert after.digest == before


def test_a_save_tells_when_it_is_done(tmp_path):
    """`done` doesn't wait: while the writer is held it says no, and after the wait it says yes."""
    target_job = TargetJob(tmp_path, Held)

    def life(rank: int) -> tuple[bool, bool]:
        job, target = job_of(2, rank), target_job.target(rank, 2, 0)
        train_step(job)
        saving = target.save(job.state, 1)
        assert isinstance(saving, AsyncSave)
        before = saving.done()
        Held.go_on.set()
        saving.wait()
        return before, saving.done()

    assert run_ranks(2, life).results == [(False, True), (False, True)]


def test_an_error_of_the_thread_is_raised_by_wait(tmp_path):
    """A save that failed is never acknowledged, and the exit does not pass over it."""
    target_job = TargetJob(tmp_path, Careless)

    def life(rank: int) -> None:
        job, target = job_of(2, rank), target_job.target(rank, 2, 0)
        train_step(job)
        target.save(job.state, 1).wait()

    directory = target_job.shared / "step-000001"
    (directory / "__1_0.distcp").mkdir(parents=True)
    for failure in run_ranks(2, life).failures:
        assert failure.kind == "CheckpointError"
        assert f"failed saving {directory}: rank 1: IsADirectoryError" in failure.text
