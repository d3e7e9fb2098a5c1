"""C26: rank 0 renames the directory into which the other ranks may still be writing; the right shape is `torch-save-atomic`."""

from __future__ import annotations

from chaosckpt.targets.api import Done, Pending
from chaosckpt.targets.layout import step_directory
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.training.state import TrainState


class RenameRaces(TorchSaveAtomic):
    """As the right one, without the wait between writing and renaming."""

    name = "c26"

    def save(self, state: TrainState, step: int) -> Pending:
        """Write and rename. The fault: rank 0 asks nobody."""
        final = step_directory(self.shared, step)
        temporary = final.with_name(final.name + ".tmp")
        self.stage("snapshot")
        shared_part, own_part = state.state_dict(), state.rank_state_dict()
        self.stage("persist")
        self.on_rank_zero(f"preparing {temporary}", lambda: self.prepare(temporary))
        self.write(temporary, shared_part, own_part)
        self.stage("commit")
        if self.rank == 0:
            self.commit(temporary, final)
        self.barrier()
        return Done("shared")
