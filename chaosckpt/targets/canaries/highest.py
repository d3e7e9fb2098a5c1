"""`canary-highest`: the highest-numbered directory is chosen, complete or not.

Caught first by newest-complete: after a crash in the middle of a save that directory can't be loaded, and the complete
one before it, which is required, is not tried.
"""

from __future__ import annotations

from chaosckpt.targets.api import Done, Pending
from chaosckpt.targets.layout import step_directory
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class Highest(TorchSaveAtomic):
    """One directory a step, and every one counts."""

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
