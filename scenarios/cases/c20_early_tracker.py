"""C20: the tracker of an asynchronous save names a step that is still being written; the right shape is `dcp-async`."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch.distributed as dist

from chaosckpt.targets.dcp_async import DcpAsync

TRACKER = "latest_checkpointed_iteration.txt"


class EarlyTracker(DcpAsync):
    """Recovery loads what the tracker names."""

    name = "c20"

    def begin(self, snapshot: dict[str, Any], directory: Path, group: dist.ProcessGroup | None) -> Future[Any]:
        """Begin to save. The fault: the tracker follows the call, not the save."""
        future = super().begin(snapshot, directory, group)
        if self.rank == 0:
            tracker = self.shared / TRACKER
            tracker.with_suffix(".new").write_text(directory.name.removeprefix("step-"))
            tracker.with_suffix(".new").rename(tracker)
        return future

    def _complete(self) -> list[int]:
        tracker = self.shared / TRACKER
        return [int(tracker.read_text())] if tracker.exists() else []
