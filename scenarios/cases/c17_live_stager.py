"""C17: a stager that hands on the live tensors where they are on the CPU already; the right shape is `dcp-async`."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import torch.distributed as dist
from torch.distributed.checkpoint import state_dict_saver
from torch.distributed.checkpoint.staging import AsyncStager

from chaosckpt.targets.dcp_async import DcpAsync


class LiveStager(AsyncStager):
    """Nothing has to come from an accelerator, so nothing is copied."""

    _synchronize_after_execute = False

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """The fault: training goes on changing what is returned."""
        return state_dict


class LiveTensors(DcpAsync):
    """What torch's own stagers did with tensors on the CPU, once; torch 2.13 copies them."""

    name = "c17"

    def begin(self, snapshot: dict[str, Any], directory: Path, group: dist.ProcessGroup | None) -> Future[Any]:
        """Start the saver on the live state."""
        future = state_dict_saver.async_save(
            snapshot,
            storage_writer=self.writer(directory),
            process_group=group,
            async_stager=LiveStager(),
        )
        return cast("Future[Any]", future)
