"""C33: a save over an older checkpoint, cut off, leaves the old `.metadata` vouching for new shards: load returns a mix."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from two_ranks import run, told


class KilledBeforeItsShard(FileSystemWriter):
    """Rank 1 is killed when it is about to write; rank 0 has nothing to do with that and writes its shard."""

    def write_data(self, plan, planner):
        if self.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().write_data(plan, planner)


def life(rank: int, directory: Path) -> None:
    # Every rank saves a tensor of its own, as it saves its shard of a model.
    state = {f"shard{rank}": torch.full((4,), 1.0)}
    dcp.save(state, storage_writer=FileSystemWriter(directory))
    state[f"shard{rank}"] += 1
    dcp.save(state, storage_writer=KilledBeforeItsShard(directory))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "latest"
        codes = run(life, directory)
        loaded = {"shard0": torch.zeros(4), "shard1": torch.zeros(4)}
        dcp.load(loaded, checkpoint_id=directory, no_dist=True)
    values = {name: tensor[0].item() for name, tensor in loaded.items()}
    told(
        "both shards hold 1.0, the last save that returned, or load raises",
        f"exit codes {codes}; load raised nothing and returned {values}",
        values == {"shard0": 2.0, "shard1": 1.0},
    )
