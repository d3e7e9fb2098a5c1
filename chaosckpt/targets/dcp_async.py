"""`dcp-async`: PyTorch's asynchronous distributed checkpoint in a thread, never two saves at a time."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.distributed.checkpoint import state_dict_saver

from chaosckpt.targets.api import Ack, Pending
from chaosckpt.targets.dcp import Dcp, dcp_errors
from chaosckpt.targets.layout import step_directory
from chaosckpt.workload.state import TrainState


class AsyncSave(Pending):
    """A save running in torch's checkpoint thread."""

    def __init__(self, directory: Path, future: Future[Any]) -> None:
        self._directory = directory
        self._future = future

    def wait(self) -> Ack:
        """Return when `.metadata` has its name, or raise what the thread raised."""
        with dcp_errors(f"saving {self._directory}"):
            self._future.result()
        return Ack("shared")


class DcpAsync(Dcp):
    """dcp.async_save: the state is copied before `save` returns, and written while training goes on.

    The saver thread has a process group of its own, since its collectives would otherwise mix with training's. A save
    awaits the one before it.
    """

    name = "dcp-async"

    _running: AsyncSave | None = None
    _group: dist.ProcessGroup | None = None

    def save(self, state: TrainState, step: int) -> Pending:
        """Copy the state, and begin to write one step's directory."""
        self.close()
        directory = step_directory(self.shared, step)
        self.stage("snapshot")
        snapshot = state.sharded_state_dict()
        self.stage("persist")
        self.on_rank_zero(f"clearing {directory}", lambda: self.clear(directory))
        future = state_dict_saver.async_save(
            snapshot, storage_writer=self.writer(directory), process_group=self._own_group()
        )
        self._running = AsyncSave(directory, cast("Future[Any]", future))
        return self._running

    def close(self) -> None:
        """Await the save under way, if any, and then retire what it superseded."""
        running, self._running = self._running, None
        if running is not None:
            running.wait()
            self.retire()

    def _own_group(self) -> dist.ProcessGroup | None:
        if self._group is None and dist.is_initialized():
            # A new group would wait for half an hour, where a saver should give up when training does. torch has no
            # public name for the default group's timeout.
            backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
            timeout: timedelta = backend.options._timeout
            self._group = dist.new_group(backend="gloo", timeout=timeout)
        return self._group
