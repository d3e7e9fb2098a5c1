"""`dcp`: PyTorch's distributed checkpoint, one directory a step, complete when it has its `.metadata`."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter

from chaosckpt.model.guarantee import Guarantee
from chaosckpt.targets.api import Chosen, Done, Intent, Nothing, Pending, Target
from chaosckpt.targets.layout import step_directory, steps_in
from chaosckpt.workload.state import TrainState, saved_world_size

METADATA = ".metadata"


class Dcp(Target):
    """dcp.save into `step-000004`, recovery from the newest directory with a `.metadata`.

    `.metadata` is written last, by rank 0, once every rank has written its shards. Power loss is not claimed: torch 2.13 syncs
    `.metadata` before its buffer is flushed and never syncs a directory. Options: `keep` the newest so many checkpoints (0 keeps all);
    `threads` write each rank's shards.
    """

    name = "dcp"
    guarantees: frozenset[Guarantee] = frozenset({"process-crash", "node-loss", "local-storage-loss", "world-size-change"})
    options = {"keep": 0, "threads": 1}

    def save(self, state: TrainState, step: int) -> Pending:
        """Save one step's directory; every rank returns after `.metadata` has its name."""
        directory = step_directory(self.shared, step)
        self.stage("snapshot")
        snapshot = state.sharded_state_dict()
        self.stage("persist")
        if self.rank == 0:
            self._clear(directory)
        dcp.save(snapshot, storage_writer=self._writer(directory))
        self._retire()
        return Done("shared")

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load the newest complete step: rank 0 looks, all ranks load what it found."""
        self.stage("discover")
        newest = self.together(f"listing {self.shared}", lambda: max(self._complete(), default=None), only=0)[0]
        if newest is None:
            return self.nothing(intent, str(self.shared / "step-*" / METADATA))
        self.stage("load")
        load_sharded(self, state, step_directory(self.shared, newest))
        return Chosen(newest)

    def _writer(self, directory: Path) -> FileSystemWriter:
        return FileSystemWriter(directory, thread_count=int(self.option("threads")))

    def _complete(self) -> list[int]:
        return [step for step in steps_in(self.shared) if (step_directory(self.shared, step) / METADATA).exists()]

    def _clear(self, directory: Path) -> None:
        # What an interrupted save of this step left is removed, `.metadata` first: it must not vouch for other shards than its own.
        # The other ranks write only after rank 0 has planned the save with them, so nothing of theirs is hit.
        (directory / METADATA).unlink(missing_ok=True)
        if directory.exists():
            for leftover in sorted(directory.iterdir()):
                leftover.unlink()

    def _retire(self) -> None:
        keep = int(self.option("keep"))
        if keep == 0:
            return
        self.stage("retire")
        if self.rank == 0:
            for step in self._complete()[:-keep]:
                directory = step_directory(self.shared, step)
                (directory / METADATA).unlink()
                shutil.rmtree(directory)


def load_sharded(target: Target, state: TrainState, directory: Path) -> None:
    """dcp.load of a sharded state, in the saving world's size or another. Raises RecoveryError on every rank when any rank failed."""
    reader = FileSystemReader(directory)

    def load() -> None:
        saved = saved_world_size(reader.read_metadata().state_dict_metadata)
        template = state.sharded_state_dict(with_rank_state=saved == target.world_size)
        dcp.load(template, storage_reader=reader)
        state.load_sharded_state_dict(template)

    target.together(f"loading {directory}", load)
