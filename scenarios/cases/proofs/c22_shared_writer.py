"""C22: one FileSystemWriter for two overlapping async saves: `.metadata` of the first lands in the second's directory."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from two_ranks import told


class Slow(FileSystemWriter):
    """The first save has written its shards and takes its time before the `.metadata`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.first_wrote, self.go_on = threading.Event(), threading.Event()

    def write_data(self, plan, planner):
        result = super().write_data(plan, planner)
        if not self.first_wrote.is_set():
            self.first_wrote.set()
            self.go_on.wait()
        return result


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        writer = Slow(root)
        state = {"weights": torch.full((4,), 1.0)}
        first = dcp.async_save(state, checkpoint_id=root / "step-1", storage_writer=writer, no_dist=True)
        writer.first_wrote.wait()
        state["weights"] += 1
        second = dcp.async_save(state, checkpoint_id=root / "step-2", storage_writer=writer, no_dist=True)
        second.result()
        writer.go_on.set()
        first.result()
        left = {step: sorted(path.name for path in (root / step).iterdir()) for step in ("step-1", "step-2")}
    told(
        "both futures resolve, and both directories have a .metadata",
        f"both futures resolved; {left}",
        left["step-1"] == ["__0_0.distcp"],
    )
