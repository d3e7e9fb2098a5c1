"""`canary-early-marker`: the marker that says "complete" is written before the shards.

Caught first by newest-complete: after a crash in the middle of a save the marked directory can't be loaded, and the one
before it, which is required, is not tried.
"""

from __future__ import annotations

from pathlib import Path

from chaosckpt.targets.api import Done, Pending
from chaosckpt.targets.layout import step_directory, steps_in
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState

MARKER = "complete"


class EarlyMarker(TorchSaveAtomic):
    """One directory a step, which counts once it holds a marker."""

    name = "canary-early-marker"

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: the marker goes up first."""
        directory = step_directory(self.shared, step)
        self.stage("snapshot")
        shared_part, own_part = state.state_dict(), state.rank_state_dict()
        self.stage("persist")
        self.on_rank_zero(f"marking {directory}", lambda: self._mark(directory))
        self.together(f"writing {directory}", lambda: self.write(directory, shared_part, own_part))
        return Done("shared")

    def complete(self) -> list[int]:
        """The steps whose directory holds the marker."""
        return [step for step in steps_in(self.shared) if (step_directory(self.shared, step) / MARKER).exists()]

    def _mark(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        (directory / MARKER).touch()
