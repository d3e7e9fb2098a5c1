"""`canary-save-advances`: after a save the data loader is made anew, with the batch that it had fetched ahead lost.

Caught first by exactly-once-data: what the save holds is right, and the training that goes on after it skips a batch.
"""

from __future__ import annotations

from chaosckpt.targets.api import Pending
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class SaveAdvances(TorchSaveAtomic):
    """Correct for a training that is restarted after every save."""

    name = "canary-save-advances"

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: a save changes the live data position."""
        pending = super().save(state, step)
        state.sampler.next_batch()
        return pending
