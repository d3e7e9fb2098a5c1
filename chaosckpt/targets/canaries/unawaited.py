"""`canary-unawaited`: an orderly exit doesn't await the save under way.

Caught first by bounded-saves: the job ends well, and its last save was never finished.
"""

from __future__ import annotations

from chaosckpt.targets.torch_save_async import TorchSaveAsync


class Unawaited(TorchSaveAsync):
    """Correct where the training script awaits its saves."""

    name = "canary-unawaited"

    def admit(self) -> None:
        """The save before is awaited."""
        super().close()

    def close(self) -> None:
        """The bug: nothing is awaited."""
