"""C1, the right shape: shards written by several threads, and a save that fails when one of them has failed."""

from __future__ import annotations

from pathlib import Path

from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from chaosckpt.targets.dcp import Dcp


class CountingWriter(FileSystemWriter):
    """torch's writer loses what its second and further threads raise; it returns no result for what they didn't write."""

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write this rank's part of the plan. Raises OSError when fewer items were written than were planned."""
        results = super().write_data(plan, planner)
        written, planned = len(results.value()), len(plan.items)
        if written != planned:
            raise OSError(f"a writer thread failed: {written} of {planned} items were written to {self.path}")
        return results


class CheckedThreads(Dcp):
    """dcp.save with two writer threads a rank, whose results are counted."""

    name = "c01-right"

    def writer(self, directory: Path) -> FileSystemWriter:
        """Two threads write this rank's shards."""
        return CountingWriter(directory, thread_count=2)
