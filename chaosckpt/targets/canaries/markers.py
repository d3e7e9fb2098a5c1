"""Canaries whose marker, pointer or tracker file says something else than the checkpoint beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chaosckpt.targets.api import Chosen, Done, Intent, Nothing, Pending
from chaosckpt.targets.layout import step_directory, steps_in
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.training.state import TrainState

MARKER = "complete"
POINTER = "latest"


class EarlyMarker(TorchSaveAtomic):
    """The marker that says "complete" is written before the shards.

    Caught first by newest-complete: after a crash in the middle of a save the marked directory can't be loaded, and
    the one before it, which is required, is not tried.

    One directory a step, which counts once it holds a marker.
    """

    name = "canary-early-marker"

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: the marker goes up first."""
        directory = step_directory(self.shared, step)
        self.stage("snapshot")
        shared_part, own_part = state.state_dict(), state.rank_state_dict()
        self.stage("persist")
        self.on_rank_zero(f"marking {directory}", lambda: self._mark(directory))
        self.together(f"writing {directory}", lambda: self.write(directory, shared_part, own_part))
        return Done("shared")

    def complete(self) -> list[int]:
        """The steps whose directory holds the marker."""
        return [step for step in steps_in(self.shared) if (step_directory(self.shared, step) / MARKER).exists()]

    def _mark(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        (directory / MARKER).touch()


class PointerEarly(TorchSaveAtomic):
    """The file that names the newest checkpoint is advanced before the data is written.

    Caught first by newest-complete: after a crash in the middle of a save the pointer names a directory that is not
    there, and the one before it, which is required, is not tried.

    Recovery loads what the pointer names.
    """

    name = "canary-pointer-early"

    def prepare(self, temporary: Path) -> None:
        """The bug: at this time nothing of the checkpoint is written yet."""
        super().prepare(temporary)
        pointer = self.shared / POINTER
        pointer.with_suffix(".new").write_text(temporary.stem.removeprefix("step-"))
        pointer.with_suffix(".new").rename(pointer)

    def choose(self, steps: Sequence[int]) -> int | None:
        """What the pointer says."""
        pointer = self.shared / POINTER
        return int(pointer.read_text()) if pointer.exists() else None


class PointerInPlace(TorchSaveAtomic):
    """The file that names the newest checkpoint is rewritten in place.

    Caught first by newest-complete: a crash between the truncation and the write leaves a pointer to nothing, where
    a complete checkpoint, which is required, lies beside it.

    Recovery loads what the pointer names.
    """

    name = "canary-pointer-in-place"

    def commit(self, temporary: Path, final: Path) -> None:
        """The bug: no temporary file for the pointer."""
        super().commit(temporary, final)
        (self.shared / POINTER).write_text(final.name.removeprefix("step-"))

    def choose(self, steps: Sequence[int]) -> int | None:
        """What the pointer says, if it says anything."""
        pointer = self.shared / POINTER
        named = pointer.read_text() if pointer.exists() else ""
        return int(named) if named else None


class Misreport(TorchSaveAtomic):
    """A tracker file, written before the save it names, says which step was loaded.

    Caught first by reported-step: after a crash in the middle of a save the tracker names that save, while the one
    before it is loaded, which is the right one.
    """

    name = "canary-misreport"

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: the tracker is ahead of the checkpoint."""
        if self.rank == 0:
            tracker = self.shared / "latest.txt"
            tracker.with_suffix(".new").write_text(str(step))
            tracker.with_suffix(".new").rename(tracker)
        return super().save(state, step)

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load the newest complete checkpoint and report another."""
        answer = super().recover(state, intent)
        if isinstance(answer, Nothing):
            return answer
        return Chosen(self.on_rank_zero("reading latest.txt", lambda: int((self.shared / "latest.txt").read_text())))
