"""`torch-save-atomic`: torch.save made safe, with a temporary directory, fsync, rename and barriers."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from chaosckpt.model.guarantee import GUARANTEES
from chaosckpt.targets.api import Chosen, Done, Intent, Nothing, Option, Pending, Target
from chaosckpt.targets.layout import remove_tree, step_directory, steps_in
from chaosckpt.training.state import TrainState

SHARED_PART = "state.pt"


class TorchSaveAtomic(Target):
    """One directory a step. It gets its name only when all files in it are complete and synced: the rename commits.

    Rank 0 writes the shared part, every rank its own part. The newest `keep` checkpoints are kept (0 keeps all).
    """

    name = "torch-save-atomic"
    guarantees = GUARANTEES - {"integrity"}
    options: ClassVar[Mapping[str, Option]] = {"keep": 2}

    def save(self, state: TrainState, step: int) -> Pending:
        """Write everything under a temporary name, then commit. Every rank returns only after the commit."""
        final = step_directory(self.shared, step)
        temporary = final.with_name(final.name + ".tmp")
        self.stage("snapshot")
        shared_part, own_part = state.state_dict(), state.rank_state_dict()
        self.stage("persist")
        self.on_rank_zero(f"preparing {temporary}", lambda: self.prepare(temporary))
        self.together(f"writing {temporary}", lambda: self.write(temporary, shared_part, own_part))
        self.stage("commit")
        self.on_rank_zero(f"committing {final}", lambda: self.commit(temporary, final))
        return Done("shared")

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load the newest directory that has its final name."""
        self.stage("discover")
        chosen = self.on_rank_zero(f"listing {self.shared}", lambda: self.choose(self.complete()))
        if chosen is None:
            return self.nothing(intent, str(self.shared / "step-*"))
        self.stage("load")
        self.load(state, chosen)
        return Chosen(chosen)

    def retained(self) -> Sequence[int]:
        """The steps whose directory has its final name."""
        return self.on_rank_zero(f"listing {self.shared}", self.complete)

    def load(self, state: TrainState, step: int) -> None:
        """Load the directory of one step. Raises CheckpointError on every rank if any can't read it."""
        directory = step_directory(self.shared, step)
        shared_part, own_part = self.together(f"loading {directory}", lambda: self.read(directory))
        self.apply(state, shared_part, own_part)

    def prepare(self, temporary: Path) -> None:
        """Remove what interrupted saves left, and make the temporary directory."""
        for entry in sorted(self.shared.iterdir()):
            if entry.suffix in (".tmp", ".old"):
                remove_tree(entry)
        temporary.mkdir()

    def write(self, directory: Path, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """Write and sync this rank's files."""
        if self.rank == 0:
            save_synced(shared_part, directory / SHARED_PART)
        save_synced(own_part, directory / own_file(self.rank))

    def commit(self, temporary: Path, final: Path) -> None:
        """Give the directory its name, durably, then retire what it supersedes."""
        self.fsync_directory(temporary)
        if final.exists():
            self.retire(final)
        temporary.rename(final)
        self.fsync_directory(self.shared)
        keep = int(self.option("keep"))
        superseded = steps_in(self.shared)[:-keep] if keep else []
        if superseded:
            self.stage("retire")
        for step in superseded:
            self.retire(step_directory(self.shared, step))

    def complete(self) -> list[int]:
        """The steps whose directory has its final name, ascending."""
        return steps_in(self.shared)

    def choose(self, steps: Sequence[int]) -> int | None:
        """Which of the complete steps, in ascending order, to load."""
        return steps[-1] if steps else None

    def read(self, directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        """The shared part, and this rank's own; a rank that is new reads rank 0's, for the data position."""
        own = directory / own_file(self.rank)
        own_part = load_file(own if own.exists() else directory / own_file(0))
        # The stamp says [attempt, step, rank, world size] of the capture.
        if int(own_part["stamp"][2]) != self.rank < int(own_part["stamp"][3]):
            raise FileNotFoundError(errno.ENOENT, "a saving rank's file is missing", str(own))
        return load_file(directory / SHARED_PART), own_part

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """Put what was read into the live state."""
        state.load_state_dict(shared_part)
        state.load_rank_state_dict(own_part)

    def retire(self, directory: Path) -> None:
        """Remove a superseded checkpoint."""
        # A directory that is half deleted must not have a checkpoint's name.
        old = directory.with_name(directory.name + ".old")
        directory.rename(old)
        remove_tree(old)


def own_file(rank: int) -> str:
    """The name of the file with a rank's own part."""
    return f"rank-{rank}.pt"


def save_synced(value: object, path: Path) -> None:
    """torch.save to a file whose bytes are on storage when this returns."""
    with path.open("wb") as file:
        torch.save(value, file)
        file.flush()
        os.fsync(file.fileno())


def load_file(path: Path) -> dict[str, Any]:
    """torch.load of plain data."""
    loaded: dict[str, Any] = torch.load(path, weights_only=True)
    return loaded
