"""`canary-unreadable-deleted`: recovery deletes the checkpoint that it can't read, so that the next start is clean.

Caught first by durable-acknowledgement: after one failed read, which says nothing about the file, the only checkpoint, which was
acknowledged, is gone, and an audit finds it in no list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from chaosckpt.targets.api import CheckpointError, Option
from chaosckpt.targets.layout import remove_tree, step_directory
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class UnreadableDeleted(TorchSaveAtomic):
    """Correct while every read succeeds. It keeps one checkpoint."""

    name = "canary-unreadable-deleted"
    options: ClassVar[Mapping[str, Option]] = {"keep": 1}

    def load(self, state: TrainState, step: int) -> None:
        """The bug: an error is taken for damage, and damage for a reason to delete."""
        try:
            super().load(state, step)
        except CheckpointError:
            if self.rank == 0:
                remove_tree(step_directory(self.shared, step))
            raise
