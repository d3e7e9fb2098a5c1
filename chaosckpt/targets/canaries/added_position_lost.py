"""`canary-added-position-lost`: a rank that a larger world adds begins with the first sample.

Caught first by full-state: the data position is global, and after a larger world's recovery the new ranks have another.
"""

from __future__ import annotations

from typing import Any

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class AddedPositionLost(TorchSaveAtomic):
    """Correct in the world that saved, and in every smaller one."""

    name = "canary-added-position-lost"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: a rank without a file of its own has no position."""
        if self.rank >= int(own_part["stamp"][3]):
            own_part = {**own_part, "sampler": state.sampler.state_dict()}
        super().apply(state, shared_part, own_part)
