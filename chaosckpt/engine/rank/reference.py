"""The program of the reference job: it trains without any target, and hands its state on by files of its own."""

from __future__ import annotations

from pathlib import Path

import torch

from chaosckpt.engine.rank.job import JobProgram
from chaosckpt.engine.rank.training import trace
from chaosckpt.engine.wire.channel import Channel
from chaosckpt.engine.wire.orders import RankOrder
from chaosckpt.engine.wire.programs import ReferenceProgram
from chaosckpt.engine.wire.reports import Referred
from chaosckpt.training.digest import digest
from chaosckpt.training.loop import Job, train_step
from chaosckpt.training.state import TrainState


class ReferenceJob(JobProgram):
    """What the job under test should have trained: no checkpointer touches this state."""

    def __init__(self, order: RankOrder, channel: Channel, program: ReferenceProgram) -> None:
        super().__init__(order, channel)
        self.program = program

    def run(self) -> None:
        """Begin at step 0, or with the state that an earlier reference job exported; export it after each save step."""
        self.join()
        job = self.build()
        self.where = "train"
        if self.program.source:
            self.take_over(job.state)
        self.report(Referred(self.rank, job.state.step, digest=digest(job.state)))
        self.train_on(job, Path(self.program.directory))

    def train_on(self, job: Job, directory: Path) -> None:
        """Train to the end."""
        settings, state = self.workload, job.state
        while state.step < settings.steps:
            trained = trace(train_step(job))
            saved = settings.saves_after(state.step)
            self.report(Referred(self.rank, state.step, trained, digest(state) if saved else None))
            if saved:
                self.export(state, directory / str(state.step))

    def export(self, state: TrainState, directory: Path) -> None:
        """Write the shared part, whole, by rank 0, and every rank's random streams."""
        shared = state.state_dict()
        directory.mkdir(parents=True, exist_ok=True)
        if self.rank == 0:
            torch.save({"shared": shared, "sampler": state.sampler.state_dict()}, directory / "shared.pt")
        torch.save(state.rng.state_dict(), directory / f"rank-{self.rank}.pt")

    def take_over(self, state: TrainState) -> None:
        """Load an export in this topology; a rank whose streams aren't kept gets them as the workload derives them."""
        source = Path(self.program.source)
        loaded = torch.load(source / "shared.pt", weights_only=True)
        state.load_state_dict(loaded["shared"])
        state.sampler.load_state_dict(loaded["sampler"])
        if self.program.kept[self.rank]:
            state.rng.load_state_dict(torch.load(source / f"rank-{self.rank}.pt", weights_only=True))
        else:
            state.derive_rank_state()
