"""C17: values changed after async_save returned must not reach the checkpoint: tensors on the CPU, and other objects."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import FileSystemWriter
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
        state = {"weights": torch.full((4,), 1.0), "seen": [1], "nested": {"view": torch.full((8,), 1.0)[2:4]}}
        slow = Slow(Path(folder) / "step-1")
        saving = dcp.async_save(state, storage_writer=slow, no_dist=True)
        state["weights"] += 1
        state["seen"].append(2)
        state["nested"]["view"] += 1
        slow.go_on.set()
        saving.result()
        loaded = {"weights": torch.zeros(4), "seen": [], "nested": {"view": torch.zeros(2)}}
        dcp.load(loaded, checkpoint_id=Path(folder) / "step-1", no_dist=True)
    found = (loaded["weights"][0].item(), loaded["seen"], loaded["nested"]["view"][0].item())
    told("the values at the call: (1.0, [1], 1.0)", f"{found}", found != (1.0, [1], 1.0))
