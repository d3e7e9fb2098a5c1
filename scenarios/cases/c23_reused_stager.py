"""C23: one stager for all saves, two of which overlap; the right shape gives each save under way its own."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar, cast

import torch.distributed as dist
from torch.distributed.checkpoint import state_dict_saver
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

from chaosckpt.targets.api import Context
from chaosckpt.targets.dcp_async import DcpAsyncOverlapping

# What needs an accelerator is off.
OPTIONS = StagingOptions(
    use_pinned_memory=False, use_shared_memory=False, use_async_staging=False, use_non_blocking_copy=False
)


class ReusedStager(DcpAsyncOverlapping):
    """The stager is kept, so that its copies' memory needn't be allocated anew.

    The fault: `stagers` is one. It copies into the same memory each time, which a save under way is still writing.
    """

    name = "c23"
    stagers: ClassVar[int] = 1

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._stagers = deque(DefaultStager(OPTIONS) for _ in range(self.stagers))

    def begin(self, snapshot: dict[str, Any], directory: Path, group: dist.ProcessGroup | None) -> Future[Any]:
        """Copy the snapshot by the stager that was used longest ago, and start the saver."""
        self._stagers.rotate()
        future = state_dict_saver.async_save(
            snapshot,
            storage_writer=self.writer(directory),
            process_group=group,
            async_stager=self._stagers[0],
        )
        return cast("Future[Any]", future)


class StagerForEach(ReusedStager):
    """As many stagers as there can be saves under way: memory is reused when the save is over that it was copied for."""

    name = "c23-right"
    stagers = DcpAsyncOverlapping.outstanding
