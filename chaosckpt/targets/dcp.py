"""`dcp`: PyTorch's distributed checkpoint, one directory a step, complete when it has its `.metadata`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter

from chaosckpt.model.guarantee import Guarantee
from chaosckpt.targets.api import CheckpointError, Chosen, Done, Intent, Nothing, Option, Pending, Target
from chaosckpt.targets.layout import remove_tree, step_directory, steps_in
from chaosckpt.training.state import TrainState, saved_world_size

METADATA = ".metadata"

# Both are what these targets mean to do: a world of one rank, and saving over an existing directory.
warnings.filterwarnings("ignore", message="torch.distributed is disabled, unavailable or uninitialized")
warnings.filterwarnings("ignore", message="Detected an existing checkpoint in")


class Dcp(Target):
    """dcp.save into `step-000004`, recovery from the newest directory with a `.metadata`.

    `.metadata` is written last, by rank 0, once every rank has written its shards. Power loss is not claimed: torch
    2.13 syncs `.metadata` before its buffer is flushed and never syncs a directory. Options: `keep` the newest so many
    checkpoints (0 keeps all); `threads` write each rank's shards.
    """

    name = "dcp"
    guarantees: ClassVar[frozenset[Guarantee]] = frozenset(
        {"process-crash", "node-loss", "local-storage-loss", "world-size-change"}
    )
    options: ClassVar[Mapping[str, Option]] = {"keep": 0, "threads": 1}

    def save(self, state: TrainState, step: int) -> Pending:
        """Save one step's directory; every rank returns after `.metadata` has its name."""
        directory = step_directory(self.shared, step)
        self.stage("snapshot")
        snapshot = state.sharded_state_dict()
        self.stage("persist")
        self.on_rank_zero(f"clearing {directory}", lambda: self.clear(directory))
        with dcp_errors(f"saving {directory}"):
            state_dict_saver.save(snapshot, storage_writer=self.writer(directory))
        self.retire()
        return Done("shared")

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load the newest complete step: rank 0 looks, all ranks load what it found."""
        self.stage("discover")
        newest = self.on_rank_zero(f"listing {self.shared}", lambda: max(self._complete(), default=None))
        if newest is None:
            return self.nothing(intent, str(self.shared / "step-*" / METADATA))
        self.stage("load")
        self.load(state, newest)
        return Chosen(newest)

    def retained(self) -> Sequence[int]:
        """The steps whose directory has a `.metadata`."""
        return self.on_rank_zero(f"listing {self.shared}", self._complete)

    def load(self, state: TrainState, step: int) -> None:
        """dcp.load of one step's directory. Raises CheckpointError on every rank if any can't read it."""
        load_sharded(self, state, step_directory(self.shared, step))

    def writer(self, directory: Path) -> FileSystemWriter:
        """A fresh writer for one save: one that is used for two at a time mixes them up."""
        return FileSystemWriter(directory, thread_count=int(self.option("threads")))

    def clear(self, directory: Path) -> None:
        """Remove what an interrupted save of this step left, `.metadata` first: it may vouch for its own shards only.

        A save of a smaller world would not overwrite all of a larger one's shards.
        """
        if directory.exists():
            (directory / METADATA).unlink(missing_ok=True)
            remove_tree(directory)

    def retire(self) -> None:
        """Remove all but the newest `keep` complete checkpoints."""
        keep = int(self.option("keep"))
        if keep == 0:
            return
        self.stage("retire")
        if self.rank == 0:
            for step in self._complete()[:-keep]:
                directory = step_directory(self.shared, step)
                (directory / METADATA).unlink()
                remove_tree(directory)

    def _complete(self) -> list[int]:
        return [step for step in steps_in(self.shared) if (step_directory(self.shared, step) / METADATA).exists()]


@contextmanager
def dcp_errors(doing: str) -> Iterator[None]:
    """Turn what DCP raises, on every rank alike, into a CheckpointError: torch's own is no Exception but a BaseException."""
    try:
        yield
    except CheckpointException as error:
        causes = "; ".join(f"rank {rank}: {cause[0]!r}" for rank, cause in sorted(error.failures.items()))
        raise CheckpointError(f"failed {doing}: {causes}") from error


def load_sharded(
    target: Target, state: TrainState, directory: Path | str, reader: FileSystemReader | None = None
) -> None:
    """dcp.load of a sharded state, in any world size. Raises CheckpointError on every rank if any failed.

    `reader` reads what isn't a directory on a file system.
    """
    reader = reader or FileSystemReader(directory)
    # One collective call after the other: a rank that failed in the first must not meet peers that are in the second.
    metadata = target.together(f"reading {directory}/{METADATA}", reader.read_metadata)
    same_world = saved_world_size(metadata.state_dict_metadata) == target.world_size
    template = state.sharded_state_dict(with_rank_state=same_world)
    with dcp_errors(f"loading {directory}"):
        state_dict_loader.load(template, storage_reader=reader)
    state.load_sharded_state_dict(template)
