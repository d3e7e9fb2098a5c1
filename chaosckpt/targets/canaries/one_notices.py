"""`canary-one-notices`: only rank 0 notices that a save failed; it leaves the checkpoint uncommitted and tells nobody.

Caught first by durable-acknowledgement: every rank was told that the checkpoint is safe, and an audit finds the one before it as the
newest.
"""

from __future__ import annotations

import sys

from chaosckpt.targets.api import CheckpointError, Done, Pending
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class OneNotices(TorchSaveAtomic):
    """Correct while nothing fails."""

    name = "canary-one-notices"

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: a message on rank 0, and Done on all."""
        try:
            return super().save(state, step)
        except CheckpointError as error:
            if self.rank == 0:
                sys.stderr.write(f"step {step} was not saved: {error}\n")
            return Done("shared")
