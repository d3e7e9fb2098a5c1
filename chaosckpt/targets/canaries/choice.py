"""Canaries whose recovery chooses another checkpoint than the newest complete one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from chaosckpt.model.scenario import Strategy
from chaosckpt.targets.api import Chosen, Done, Intent, Nothing, Pending, Target
from chaosckpt.targets.layout import step_directory, steps_in
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic, load_file, save_synced
from chaosckpt.training.state import TrainState


class Highest(TorchSaveAtomic):
    """The highest-numbered directory is chosen, complete or not.

    Caught first by newest-complete: after a crash in the middle of a save that directory can't be loaded, and the
    complete one before it, which is required, is not tried.

    One directory a step, and every one counts.
    """

    name = "canary-highest"

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: the files are written under the final name, and nothing tells when they are complete."""
        directory = step_directory(self.shared, step)
        self.stage("snapshot")
        shared_part, own_part = state.state_dict(), state.rank_state_dict()
        self.stage("persist")
        self.on_rank_zero(f"making {directory}", lambda: directory.mkdir(exist_ok=True))
        self.together(f"writing {directory}", lambda: self.write(directory, shared_part, own_part))
        return Done("shared")


class Oldest(TorchSaveAtomic):
    """Recovery picks the oldest of the kept checkpoints.

    Caught first by newest-complete: after two acknowledged saves the newer is required, and the older is loaded,
    whole and honestly reported.

    Correct in all but the choice.
    """

    name = "canary-oldest"

    def choose(self, steps: Sequence[int]) -> int | None:
        """The bug: the first instead of the last."""
        return steps[0] if steps else None


class OwnNewest(Target):
    """Each rank resumes from its own newest file.

    Caught first by rank-agreement: a crash between the ranks' renames leaves one a step ahead, and each is content
    with its own.

    One directory a rank, one file a step in it, each written atomically.
    """

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


class YoungestKept(TorchSaveAtomic):
    """A restart clears up, and goes by modification times: only the youngest directory stays.

    Caught first by newest-complete: where the times are not in the order of the steps (they were perturbed, as a
    copy or a clock does it) the newest checkpoint is removed and an older one loaded.

    Correct while times grow with steps.
    """

    name = "canary-youngest-kept"

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Keep one checkpoint, and load it."""
        self.stage("discover")
        self.on_rank_zero(f"clearing up {self.shared}", self._clear)
        return super().recover(state, intent)

    def _clear(self) -> None:
        """The bug: the name has the step, and the time is asked."""
        directories = [step_directory(self.shared, step) for step in steps_in(self.shared)]
        for directory in sorted(directories, key=lambda path: path.stat().st_mtime_ns)[:-1]:
            self.retire(directory)
