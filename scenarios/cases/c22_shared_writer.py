"""C22: one FileSystemWriter for all saves, two of which overlap; the right shape is `dcp-async-overlapping`."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import torch.distributed as dist
from torch.distributed.checkpoint import state_dict_saver
from torch.distributed.checkpoint.filesystem import FileSystemWriter

from chaosckpt.targets.api import Context
from chaosckpt.targets.dcp_async import DcpAsyncOverlapping


class SharedWriter(DcpAsyncOverlapping):
    """The writer is made once, as the optimizer is, and each save names its directory by `checkpoint_id`."""

    name = "c22"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._writer = FileSystemWriter(self.shared)

    def begin(self, snapshot: dict[str, Any], directory: Path, group: dist.ProcessGroup | None) -> Future[Any]:
        """The fault: `checkpoint_id` sets the writer's path, also for the save that is still under way."""
        future = state_dict_saver.async_save(
            snapshot, checkpoint_id=directory, storage_writer=self._writer, process_group=group
        )
        return cast("Future[Any]", future)
