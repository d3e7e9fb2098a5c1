"""`dcp-overwrite`: PyTorch's distributed checkpoint saved over one rolling directory, as many scripts do."""

from __future__ import annotations

from pathlib import Path

from torch.distributed.checkpoint import state_dict_saver
from torch.distributed.checkpoint.filesystem import FileSystemWriter

from chaosckpt.targets.api import Chosen, Done, Intent, Nothing, Pending, Target
from chaosckpt.targets.dcp import METADATA, Dcp, dcp_errors, load_sharded
from chaosckpt.workload.state import TrainState


class DcpOverwrite(Target):
    """dcp.save into `latest`, every time.

    It claims what `dcp` claims, as people expect of it, and does not keep it: while a save overwrites the shards, the
    previous save's `.metadata` still vouches for them.
    """

    name = "dcp-overwrite"
    guarantees = Dcp.guarantees

    def save(self, state: TrainState, step: int) -> Pending:
        """Save over the previous checkpoint."""
        self.stage("snapshot")
        snapshot = state.sharded_state_dict()
        self.stage("persist")
        with dcp_errors(f"saving {self._directory()}"):
            state_dict_saver.save(snapshot, storage_writer=FileSystemWriter(self._directory()))
        return Done("shared")

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load `latest` if it has a `.metadata`."""
        metadata = self._directory() / METADATA
        self.stage("discover")
        if not self.on_rank_zero(f"looking for {metadata}", metadata.exists):
            return self.nothing(intent, str(metadata))
        self.stage("load")
        load_sharded(self, state, self._directory())
        return Chosen(state.step)

    def _directory(self) -> Path:
        return self.shared / "latest"
