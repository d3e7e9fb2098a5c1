"""`torch-save-async`: torch-save-atomic with a thread that writes a copy of the state while training goes on."""

from __future__ import annotations

import copy
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from chaosckpt.targets.api import Ack, Pending
from chaosckpt.targets.layout import step_directory
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.training.state import TrainState


class TorchSaveAsync(TorchSaveAtomic):
    """The thread only writes: what needs all ranks, the commit included, happens where a save is awaited.

    One save is under way at a time; the next one awaits it.
    """

    name = "torch-save-async"

    _running: Writing | None = None
    _executor: ThreadPoolExecutor | None = None

    def save(self, state: TrainState, step: int) -> Pending:
        """Copy the state, and begin to write it under a temporary name."""
        self.admit()
        final = step_directory(self.shared, step)
        temporary = final.with_name(final.name + ".tmp")
        self.stage("snapshot")
        shared_part, own_part = self.snapshot(state)
        self.stage("persist")
        self.on_rank_zero(f"preparing {temporary}", lambda: self.prepare(temporary))
        if self._executor is None:
            self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="writer")
        writing = self._executor.submit(self.write, temporary, shared_part, own_part)
        self._running = Writing(self, temporary, final, writing)
        return self._running

    def admit(self) -> None:
        """Return when another save may begin."""
        self.close()

    def snapshot(self, state: TrainState) -> tuple[dict[str, Any], dict[str, Any]]:
        """The shared part and this rank's own, as they are now, whatever training does next."""
        return copy.deepcopy((state.state_dict(), state.rank_state_dict()))

    def close(self) -> None:
        """Await the save under way, if any."""
        if self._running is not None:
            self._running.wait()


class Writing(Pending):
    """One save whose files a thread writes."""

    def __init__(self, target: TorchSaveAsync, temporary: Path, final: Path, writing: Future[None]) -> None:
        self._target = target
        self._temporary = temporary
        self._final = final
        self._writing = writing
        self._committed = False

    def wait(self) -> Ack:
        """Return when every rank's files are written and committed. Ranks call it at the same point of training."""
        if not self._committed:
            target = self._target
            target.together(f"writing {self._temporary}", self._writing.result)
            target.stage("commit")
            target.on_rank_zero(f"committing {self._final}", lambda: target.commit(self._temporary, self._final))
            self._committed = True
        return Ack("shared")
