"""`dcp-overwrite`: PyTorch's distributed checkpoint saved over one rolling directory, as many scripts do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter

from chaosckpt.targets.api import CheckpointError, Chosen, Done, Intent, Nothing, Pending, Target
from chaosckpt.targets.dcp import METADATA, Dcp, dcp_errors, load_sharded
from chaosckpt.training.state import TrainState


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

    def retained(self) -> Sequence[int]:
        """The step that `latest` holds, if it has a `.metadata`."""
        held = self.on_rank_zero(f"reading the step of {self._directory()}", self._held)
        return [] if held is None else [held]

    def load(self, state: TrainState, step: int) -> None:
        """Load `latest`. Raises CheckpointError on every rank if it can't be read or is of another step."""
        load_sharded(self, state, self._directory())
        if state.step != step:
            raise CheckpointError(f"{self._directory()} should hold step {step} and holds step {state.step}")

    def _held(self) -> int | None:
        if not (self._directory() / METADATA).exists():
            return None
        template = {"step": 0}
        with dcp_errors(f"loading {self._directory()}"):
            state_dict_loader.load(template, storage_reader=FileSystemReader(self._directory()), no_dist=True)
        return template["step"]

    def _directory(self) -> Path:
        return self.shared / "latest"
