"""`canary-oldest`: recovery picks the oldest of the kept checkpoints.

Caught first by newest-complete: after two acknowledged saves the newer is required, and the older is loaded, whole and
honestly reported.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic


class Oldest(TorchSaveAtomic):
    """Correct in all but the choice."""

    name = "canary-oldest"

    def choose(self, steps: Sequence[int]) -> int | None:
        """The bug: the first instead of the last."""
        return steps[0] if steps else None
