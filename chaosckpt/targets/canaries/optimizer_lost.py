"""`canary-optimizer-lost`: the optimizer is saved and not restored.

Caught first by full-state: after any restart the optimizer's moments are those of a new optimizer.
"""

from __future__ import annotations

from typing import Any

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class OptimizerLost(TorchSaveAtomic):
    """Restores all but the optimizer."""

    name = "canary-optimizer-lost"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: what the optimizer holds now is loaded back into it."""
        super().apply(state, {**shared_part, "optimizer": state.state_dict()["optimizer"]}, own_part)
