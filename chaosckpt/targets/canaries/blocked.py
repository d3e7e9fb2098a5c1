"""`canary-blocked`: a directory that an interrupted save left makes every later save of that step fail.

Caught first by progress: each restart resumes correctly, reaches the step again, and dies at the same mkdir.
"""

from __future__ import annotations

from pathlib import Path

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic


class Blocked(TorchSaveAtomic):
    """Correct while no save was interrupted."""

    name = "canary-blocked"

    def prepare(self, temporary: Path) -> None:
        """The bug: what is left is not removed, and mkdir insists."""
        temporary.mkdir()
