"""`canary-retires-first`: retention makes room for the new checkpoint before that is committed.

Caught first by newest-complete: a crash between the two leaves nothing that recovery would take, where the checkpoint
just removed is required. always-recoverable holds no longer either, and comes after it.
"""

from __future__ import annotations

from pathlib import Path

from chaosckpt.targets.layout import step_directory, steps_in
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic


class RetiresFirst(TorchSaveAtomic):
    """Never holds more than one complete checkpoint."""

    name = "canary-retires-first"

    def commit(self, temporary: Path, final: Path) -> None:
        """The bug: the order."""
        self.stage("retire")
        for step in steps_in(self.shared):
            self.retire(step_directory(self.shared, step))
        self.stage("commit")
        super().commit(temporary, final)
