"""`canary-live-snapshot`: the writer thread is given the live tensors instead of a copy.

Caught first by complete-only: when training is faster than the thread, parameters of a later step are written beside
the step number of the save.
"""

from __future__ import annotations

from typing import Any

from chaosckpt.targets.torch_save_async import TorchSaveAsync
from chaosckpt.workload.state import TrainState


class LiveSnapshot(TorchSaveAsync):
    """Correct while the thread is fast."""

    name = "canary-live-snapshot"

    def snapshot(self, state: TrainState) -> tuple[dict[str, Any], dict[str, Any]]:
        """The bug: no copy."""
        return state.state_dict(), state.rank_state_dict()
