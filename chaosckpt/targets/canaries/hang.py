"""`canary-hang`: recovery waits for a partial directory to become complete, which nobody will do.

Caught first by clear-failure: after a crash in the middle of a save no rank resumes and none fails, without CPU time or
an operation.
"""

from __future__ import annotations

import threading

from chaosckpt.targets.api import Chosen, Intent, Nothing
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class Hang(TorchSaveAtomic):
    """Correct while no save was interrupted."""

    name = "canary-hang"

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """The bug: a directory with a temporary name is taken for a save that is still under way."""
        self.stage("discover")
        if self.on_rank_zero(f"listing {self.shared}", lambda: any(self.shared.glob("*.tmp"))):
            threading.Event().wait()
        return super().recover(state, intent)
