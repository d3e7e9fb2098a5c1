"""C16: retention removes the wrong one, because names are sorted as text; the right shape is `torch-save-atomic`."""

from __future__ import annotations

from pathlib import Path

from chaosckpt.targets.layout import step_directory, steps_in
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic


class SortedAsText(TorchSaveAtomic):
    """Keeps one checkpoint."""

    name = "c16"

    def commit(self, temporary: Path, final: Path) -> None:
        """Give the directory its name, then retire the others. The fault: step 10 comes before step 8."""
        self.fsync_directory(temporary)
        if final.exists():
            self.retire(final)
        temporary.rename(final)
        self.fsync_directory(self.shared)
        self.stage("retire")
        for text in sorted(str(step) for step in steps_in(self.shared))[:-1]:
            self.retire(step_directory(self.shared, int(text)))
