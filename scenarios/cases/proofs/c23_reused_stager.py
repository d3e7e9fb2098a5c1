"""C23: one DefaultStager for two overlapping async saves: the checkpoint of step 1 holds the weights of step 2."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from two_ranks import told


class Slow(FileSystemWriter):
    """A save that begins to write when it is let."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.go_on = threading.Event()

    def write_data(self, plan, planner):
        self.go_on.wait()
        return super().write_data(plan, planner)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        options = StagingOptions(
            use_pinned_memory=False, use_shared_memory=False, use_async_staging=False, use_non_blocking_copy=False
        )
        stager = DefaultStager(options)
        state = {"weights": torch.full((4,), 1.0)}
        slow, quick = Slow(root / "step-1"), FileSystemWriter(root / "step-2")
        first = dcp.async_save(state, storage_writer=slow, async_stager=stager, no_dist=True)
        state["weights"] += 1
        second = dcp.async_save(state, storage_writer=quick, async_stager=stager, no_dist=True)
        slow.go_on.set()
        first.result()
        second.result()
        loaded = {"weights": torch.zeros(4)}
        dcp.load(loaded, checkpoint_id=root / "step-1", no_dist=True)
    value = loaded["weights"][0].item()
    told("step-1 holds 1.0, what the weights were at its save", f"step-1 holds {value}", value == 2.0)
