"""C30: each rank asks for the key with its own number, which a smaller world never saved; the right shape is `dcp`."""

from __future__ import annotations

from torch.distributed.checkpoint import state_dict_loader
from torch.distributed.checkpoint.filesystem import FileSystemReader

from chaosckpt.targets.dcp import Dcp, dcp_errors
from chaosckpt.targets.layout import step_directory
from chaosckpt.training.state import TrainState


class KeyForEachRank(Dcp):
    """It claims that the world may change, as DCP's resharding suggests."""

    name = "c30"

    def load(self, state: TrainState, step: int) -> None:
        """dcp.load. The fault: the template has this rank's own part, whatever the checkpoint has."""
        directory = step_directory(self.shared, step)
        template = state.sharded_state_dict()
        with dcp_errors(f"loading {directory}"):
            state_dict_loader.load(template, storage_reader=FileSystemReader(directory))
        state.load_sharded_state_dict(template)
