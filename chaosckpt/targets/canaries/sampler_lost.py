"""`canary-sampler-lost`: the data position is not restored.

Caught first by full-state: after any restart the sampler stands at the first sample, and the data is seen twice.
"""

from __future__ import annotations

from typing import Any

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class SamplerLost(TorchSaveAtomic):
    """Restores all but the data position."""

    name = "canary-sampler-lost"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: the sampler keeps its own position."""
        super().apply(state, shared_part, {**own_part, "sampler": state.sampler.state_dict()})
