"""C13: asynchronous saves, and retention that goes by saves begun; the right shape is `dcp-async` with keep = 1."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar

import torch.distributed as dist

from chaosckpt.targets.dcp import METADATA
from chaosckpt.targets.dcp_async import DcpAsync
from chaosckpt.targets.layout import remove_tree, steps_in


class EarlyRetention(DcpAsync):
    """Keeps the newest checkpoint.

    The fault: when a save has been handed to its thread it counts, and all the others are removed.
    """

    name = "c13"
    options: ClassVar = {**DcpAsync.options, "keep": 1}

    def begin(self, snapshot: dict[str, Any], directory: Path, group: dist.ProcessGroup | None) -> Future[Any]:
        """Begin to save into `directory`, and remove the other checkpoints."""
        future = super().begin(snapshot, directory, group)
        self.stage("retire")
        if self.rank == 0:
            for step in steps_in(self.shared):
                other = self.shared / f"step-{step:06d}"
                if other != directory:
                    (other / METADATA).unlink(missing_ok=True)
                    remove_tree(other)
        return future
