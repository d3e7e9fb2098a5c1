"""`canary-early-acknowledgement`: a save is acknowledged when its thread has begun to write.

Caught first by newest-complete: a crash before the commit costs a checkpoint that every rank was told is safe.
"""

from __future__ import annotations

from chaosckpt.targets.api import Done, Pending
from chaosckpt.targets.torch_save_async import TorchSaveAsync
from chaosckpt.workload.state import TrainState


class EarlyAcknowledgement(TorchSaveAsync):
    """The next save, or the end of the job, commits; nobody waits for that."""

    name = "canary-early-acknowledgement"

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: the future isn't done, and the answer is Done."""
        super().save(state, step)
        return Done("shared")
