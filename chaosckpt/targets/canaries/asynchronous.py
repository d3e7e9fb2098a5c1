"""Canaries that save in a thread: acknowledged too soon, given live tensors, not awaited, or piling up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chaosckpt.targets.api import Done, Pending
from chaosckpt.targets.layout import remove_tree
from chaosckpt.targets.torch_save_async import TorchSaveAsync
from chaosckpt.training.state import TrainState


class EarlyAcknowledgement(TorchSaveAsync):
    """A save is acknowledged when its thread has begun to write.

    Caught first by newest-complete: a crash before the commit costs a checkpoint that every rank was told is safe.

    The next save, or the end of the job, commits; nobody waits for that.
    """

    name = "canary-early-acknowledgement"

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: the future isn't done, and the answer is Done."""
        super().save(state, step)
        return Done("shared")


class LiveSnapshot(TorchSaveAsync):
    """The writer thread is given the live tensors instead of a copy.

    Caught first by complete-only: when training is faster than the thread, parameters of a later step are written
    beside the step number of the save.

    Correct while the thread is fast.
    """

    name = "canary-live-snapshot"

    def snapshot(self, state: TrainState) -> tuple[dict[str, Any], dict[str, Any]]:
        """The bug: no copy."""
        return state.state_dict(), state.rank_state_dict()


class Unawaited(TorchSaveAsync):
    """An orderly exit doesn't await the save under way.

    Caught first by bounded-saves: the job ends well, and its last save was never finished.

    Correct where the training script awaits its saves.
    """

    name = "canary-unawaited"

    def admit(self) -> None:
        """The save before is awaited."""
        super().close()

    def close(self) -> None:
        """The bug: nothing is awaited."""


class Unbounded(TorchSaveAsync):
    """A new save begins whatever is still under way.

    Caught first by bounded-saves: more saves are outstanding than the one that the target claims at most.

    Copies of the state pile up in memory where storage is slow.
    """

    name = "canary-unbounded"

    def admit(self) -> None:
        """The bug: nothing is awaited."""

    def prepare(self, temporary: Path) -> None:
        """Only what an interrupted save of this step left may go: other saves are under way."""
        if temporary.exists():
            remove_tree(temporary)
        temporary.mkdir()
