"""`canary-youngest-kept`: a restart clears up, and goes by modification times: only the youngest directory stays.

Caught first by newest-complete: where the times are not in the order of the steps (they were perturbed, as a copy or a
clock does it) the newest checkpoint is removed and an older one loaded.
"""

from __future__ import annotations

from chaosckpt.targets.api import Chosen, Intent, Nothing
from chaosckpt.targets.layout import step_directory, steps_in
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class YoungestKept(TorchSaveAtomic):
    """Correct while times grow with steps."""

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
