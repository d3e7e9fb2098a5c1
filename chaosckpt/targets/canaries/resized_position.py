"""`canary-resized-position`: a world of another size converts the data position from a rank's samples, and rounds.

Caught first by full-state: with a position that isn't a multiple of the new size, samples are seen twice.
"""

from __future__ import annotations

from typing import Any

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class ResizedPosition(TorchSaveAtomic):
    """Correct in the world that saved."""

    name = "canary-resized-position"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: the position is cut to a whole number of this world's rounds."""
        if int(own_part["stamp"][3]) != self.world_size:
            sampler = own_part["sampler"]
            rounds = sampler["position"] // self.world_size
            own_part = {**own_part, "sampler": {**sampler, "position": rounds * self.world_size}}
        super().apply(state, shared_part, own_part)
