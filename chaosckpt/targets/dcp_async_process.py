"""`dcp-async-process`: PyTorch's asynchronous distributed checkpoint, written by a child process of each rank."""

from __future__ import annotations

import os
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore, TCPStore
from torch.distributed.checkpoint import state_dict_saver
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

from chaosckpt.targets.api import CheckpointError
from chaosckpt.targets.dcp_async import DcpAsync


class DcpAsyncProcess(DcpAsync):
    """dcp.async_save with `AsyncCheckpointerType.PROCESS`: torch spawns one saver a rank at the first save and keeps it.

    The savers have a process group among themselves. They meet at the store of the job's own group, so that two jobs
    on one machine can't meet each other, and no port has to be found.
    """

    name = "dcp-async-process"

    def saver_group(self) -> dist.ProcessGroup | None:
        """None: what the ranks have to tell one another before the savers are spawned, they tell in the job's group."""
        return None

    def begin(self, snapshot: dict[str, Any], directory: Path, group: dist.ProcessGroup | None) -> Future[Any]:
        """Hand a copy of the snapshot to the saver process, which is spawned at the first save."""
        meet_at_the_jobs_store()
        future = state_dict_saver.async_save(
            snapshot,
            storage_writer=self.writer(directory),
            process_group=group,
            async_checkpointer_type=AsyncCheckpointerType.PROCESS,
        )
        return cast("Future[Any]", future)


def meet_at_the_jobs_store() -> None:
    """Tell torch by its environment where savers meet. A lone rank without a process group gets one: torch needs it."""
    if not dist.is_initialized():
        own = TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=30))
        dist.init_process_group("gloo", store=own, rank=0, world_size=1)
    store = dist.distributed_c10d._get_default_store()
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    if not isinstance(store, TCPStore):
        raise CheckpointError(f"savers can only meet at a TCPStore; the job's process group was built with {store!r}")
    os.environ.update(DCP_USE_PREFIX_STORE="1", MASTER_ADDR=store.host, MASTER_PORT=str(store.port))
