"""C31, a positive control: a world of another size is refused clearly, by a target that never claimed to bear it."""

from __future__ import annotations

from typing import Any

from chaosckpt.targets.api import CheckpointError
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.training.state import TrainState


class RefusesResize(TorchSaveAtomic):
    """It loads only what a world of its own size has saved."""

    name = "c31"
    guarantees = TorchSaveAtomic.guarantees - {"world-size-change"}

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """Load. Raises CheckpointError, on every rank, in a world of another size."""
        saved = int(own_part["stamp"][3])
        if saved != self.world_size:
            raise CheckpointError(
                f"the checkpoint in {self.shared} was saved by {saved} ranks; {self.world_size} can't load it"
            )
        super().apply(state, shared_part, own_part)
