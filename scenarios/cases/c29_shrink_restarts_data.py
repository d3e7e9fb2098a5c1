"""C29: in a world of another size the data loader's state is dropped without a word; the right shape is `torch-save-atomic`."""

from __future__ import annotations

from typing import Any

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.training.state import TrainState


class ShrinkRestartsData(TorchSaveAtomic):
    """The data position is kept with the rank's own state, and that is of no use to another world."""

    name = "c29"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """Load. The fault: the position is global, and would have been of use."""
        state.load_state_dict(shared_part)
        if int(own_part["stamp"][3]) == self.world_size:
            state.load_rank_state_dict(own_part)
        else:
            state.derive_rank_state()
