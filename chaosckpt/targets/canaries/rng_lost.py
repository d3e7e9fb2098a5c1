"""`canary-rng-lost`: the random streams are not restored.

Caught first by full-state: after any restart every rank's streams are those of a new process.
"""

from __future__ import annotations

from typing import Any

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class RngLost(TorchSaveAtomic):
    """Restores all but the random streams."""

    name = "canary-rng-lost"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: the streams stay as they are."""
        super().apply(state, shared_part, {**own_part, "rng": state.rng.state_dict()})
