"""`canary-added-rng-copied`: a rank that a larger world adds gets a copy of rank 0's random streams.

Caught first by full-state: after a change of the world's size the streams of all ranks must be pairwise distinct.
"""

from __future__ import annotations

from typing import Any

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class AddedRngCopied(TorchSaveAtomic):
    """Correct in the world that saved, and in every smaller one."""

    name = "canary-added-rng-copied"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: the streams that a new rank derives are rank 0's."""
        super().apply(state, shared_part, own_part)
        if self.rank >= int(own_part["stamp"][3]):
            state.rng.seed(state.settings.seed, 0, state.step)
