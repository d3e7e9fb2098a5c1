"""A target whose storage is full after its first save."""

from __future__ import annotations

import errno
import os

from chaosckpt.targets.api import Pending
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.training.state import TrainState


class SavesOnce(TorchSaveAtomic):
    """The second save raises what a full disk raises."""

    def save(self, state: TrainState, step: int) -> Pending:
        """Save, unless something lies there already."""
        if any(self.shared.iterdir()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().save(state, step)
