"""C27: every rank saves its random streams under the same key; the right shape, a key for each rank, is `dcp`."""

from __future__ import annotations

from typing import Any

from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.distributed.checkpoint.filesystem import FileSystemReader

from chaosckpt.targets.api import Done, Pending
from chaosckpt.targets.dcp import Dcp, dcp_errors
from chaosckpt.targets.layout import step_directory
from chaosckpt.training.state import TrainState


class SharedKey(Dcp):
    """One entry `rng` beside `model` and `optimizer`. torch takes equal keys for replicas of one tensor and saves one of them."""

    name = "c27"
    guarantees = Dcp.guarantees - {"world-size-change"}

    def save(self, state: TrainState, step: int) -> Pending:
        """Save one step's directory. The fault: the streams of all ranks but one are not in it."""
        directory = step_directory(self.shared, step)
        self.stage("persist")
        self.on_rank_zero(f"clearing {directory}", lambda: self.clear(directory))
        with dcp_errors(f"saving {directory}"):
            state_dict_saver.save(self._entries(state), storage_writer=self.writer(directory))
        return Done("shared")

    def load(self, state: TrainState, step: int) -> None:
        """Load one step's directory; every rank gets the same streams."""
        directory = step_directory(self.shared, step)
        template = self._entries(state)
        with dcp_errors(f"loading {directory}"):
            state_dict_loader.load(template, storage_reader=FileSystemReader(directory))
        state.load_sharded_state_dict({**template, f"rank{self.rank}": template["own"]})

    def _entries(self, state: TrainState) -> dict[str, Any]:
        entries = state.sharded_state_dict()
        entries["own"] = entries.pop(f"rank{self.rank}")
        return entries
