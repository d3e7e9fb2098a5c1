"""`canary-own-newest`: each rank resumes from its own newest file.

Caught first by rank-agreement: a crash between the ranks' renames leaves one a step ahead, and each is content with its
own.
"""

from __future__ import annotations

from typing import ClassVar

from chaosckpt.model.settings import Strategy
from chaosckpt.targets.api import Chosen, Done, Intent, Nothing, Pending, Target
from chaosckpt.targets.layout import steps_in
from chaosckpt.targets.torch_save_atomic import load_file, save_synced
from chaosckpt.workload.state import TrainState


class OwnNewest(Target):
    """One directory a rank, one file a step in it, each written atomically."""

    name = "canary-own-newest"
    strategies: ClassVar[frozenset[Strategy]] = frozenset({"ddp"})

    def save(self, state: TrainState, step: int) -> Pending:
        """Write this rank's file; return when every rank has."""
        path = self.shared / f"rank-{self.rank}" / f"step-{step:06d}"
        self.stage("persist")
        path.parent.mkdir(exist_ok=True)
        save_synced({"shared": state.state_dict(), "own": state.rank_state_dict()}, path.with_suffix(".tmp"))
        path.with_suffix(".tmp").rename(path)
        self.barrier()
        return Done("shared")

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """The bug: no word with the other ranks."""
        directory = self.shared / f"rank-{self.rank}"
        self.stage("discover")
        newest = max(steps_in(directory), default=None) if directory.exists() else None
        if newest is None:
            return self.nothing(intent, str(directory / "step-*"))
        self.stage("load")
        value = load_file(directory / f"step-{newest:06d}")
        state.load_state_dict(value["shared"])
        state.load_rank_state_dict(value["own"])
        return Chosen(newest)
