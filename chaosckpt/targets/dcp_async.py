"""`dcp-async` and `dcp-async-overlapping`: PyTorch's asynchronous distributed checkpoint in a thread, one save at a time or two."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.distributed.checkpoint import state_dict_saver

from chaosckpt.targets.api import Ack, Context, Pending
from chaosckpt.targets.dcp import Dcp, dcp_errors
from chaosckpt.targets.layout import step_directory
from chaosckpt.training.state import TrainState


class AsyncSave(Pending):
    """A save that torch carries on in the background."""

    def __init__(self, directory: Path, future: Future[Any]) -> None:
        self._directory = directory
        self._future = future

    def wait(self) -> Ack:
        """Return when `.metadata` has its name, or raise what the saver raised."""
        with dcp_errors(f"saving {self._directory}"):
            self._future.result()
        return Ack("shared")

    def done(self) -> bool:
        """Whether `wait` would return, or raise, at once."""
        return self._future.done()


class DcpAsync(Dcp):
    """dcp.async_save: the state is copied before `save` returns, and written while training goes on.

    The saver thread has a process group of its own, since its collectives would otherwise mix with training's. With
    `outstanding` saves under way, the next one awaits the oldest; here that is one.
    """

    name = "dcp-async"

    def __init__(self, context: Context) -> None:
        self.running: deque[AsyncSave] = deque()
        """Saves that were begun and not yet found finished, oldest first."""
        self._groups: deque[dist.ProcessGroup] = deque()

    def save(self, state: TrainState, step: int) -> Pending:
        """Copy the state, and begin to write one step's directory."""
        while len(self.running) >= self.outstanding:
            self.finish_oldest()
        directory = step_directory(self.shared, step)
        self.stage("snapshot")
        snapshot = state.sharded_state_dict()
        self.stage("persist")
        # A new group is agreed on through rank 0, which a script may let go as soon as `save` has returned there. After the
        # clearing, for which all wait, every rank has its group.
        group = self.saver_group()
        self.on_rank_zero(f"clearing {directory}", lambda: self.clear(directory))
        saving = AsyncSave(directory, self.begin(snapshot, directory, group))
        self.running.append(saving)
        return saving

    def begin(self, snapshot: dict[str, Any], directory: Path, group: dist.ProcessGroup | None) -> Future[Any]:
        """Copy the snapshot and start the saver; the future ends with the save."""
        future = state_dict_saver.async_save(snapshot, storage_writer=self.writer(directory), process_group=group)
        return cast("Future[Any]", future)

    def close(self) -> None:
        """Await the saves under way, if any, and retire what they superseded."""
        while self.running:
            self.finish_oldest()

    def finish_oldest(self) -> None:
        """Await the oldest save under way, and retire what it superseded."""
        self.running.popleft().wait()
        self.retire()

    def saver_group(self) -> dist.ProcessGroup | None:
        """A process group that no other save under way uses; None in a world without one."""
        if not dist.is_initialized():
            return None
        if len(self._groups) < self.outstanding:
            self._groups.append(new_group())
        self._groups.rotate()  # to the one that was used longest ago
        return self._groups[0]


def new_group() -> dist.ProcessGroup:
    """Another group of all ranks, for collectives of a saver."""
    # A new group would wait for half an hour, where a saver should give up when training does. torch has no
    # public name for the default group's timeout.
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    timeout: timedelta = backend.options._timeout
    group = dist.new_group(backend="gloo", timeout=timeout)
    assert isinstance(group, dist.ProcessGroup)
    return group


class DcpAsyncOverlapping(DcpAsync):
    """As `dcp-async`, but a save may begin while the one before it is still being written.

    Each save under way has its own writer, its own copy of the state and its own process group: torch's are not made to
    be shared by two saves at a time. Checkpoints are retired in the order of their saves.
    """

    name = "dcp-async-overlapping"
    outstanding = 2
