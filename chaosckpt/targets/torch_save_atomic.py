"""`torch-save-atomic`: torch.save made safe, with a temporary directory, fsync, rename and barriers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from chaosckpt.model.guarantee import GUARANTEES
from chaosckpt.targets.api import Chosen, Done, Intent, Nothing, Pending, Target
from chaosckpt.targets.layout import step_directory, steps_in
from chaosckpt.workload.state import TrainState

SHARED_PART = "state.pt"


class TorchSaveAtomic(Target):
    """One directory a step. It gets its name only when every file in it is complete and synced: the rename is the commit.

    Rank 0 writes the shared part, every rank its own part. The newest `keep` checkpoints are kept (0 keeps all).
    """

    name = "torch-save-atomic"
    guarantees = GUARANTEES
    options = {"keep": 2}

    def save(self, state: TrainState, step: int) -> Pending:
        """Write everything under a temporary name, then commit. Every rank returns only after the commit."""
        final = step_directory(self.shared, step)
        temporary = final.with_name(final.name + ".tmp")
        self.stage("snapshot")
        shared_part = state.state_dict()
        self.stage("persist")
        self.together(f"preparing {temporary}", lambda: self._prepare(temporary), only=0)
        self.together(f"writing {temporary}", lambda: self._write(temporary, shared_part, state.rank_state_dict()))
        self.stage("commit")
        self.together(f"committing {final}", lambda: self._commit(temporary, final), only=0)
        return Done("shared")

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load the newest directory that has its final name."""
        self.stage("discover")
        newest = self.together(f"listing {self.shared}", lambda: max(steps_in(self.shared), default=None), only=0)[0]
        if newest is None:
            return self.nothing(intent, str(self.shared / "step-*"))
        self.stage("load")
        directory = step_directory(self.shared, newest)
        self.together(f"loading {directory}", lambda: self._load(directory, state))
        return Chosen(newest)

    def _prepare(self, temporary: Path) -> None:
        for leftover in self._leftovers():
            shutil.rmtree(leftover)
        temporary.mkdir()

    def _leftovers(self) -> Iterator[Path]:
        for entry in sorted(self.shared.iterdir()):
            if entry.suffix in (".tmp", ".old"):
                yield entry

    def _write(self, directory: Path, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        if self.rank == 0:
            save_synced(shared_part, directory / SHARED_PART)
        save_synced(own_part, directory / f"rank-{self.rank}.pt")

    def _commit(self, temporary: Path, final: Path) -> None:
        self.fsync_directory(temporary)
        if final.exists():
            self._retire(final)
        temporary.rename(final)
        self.fsync_directory(self.shared)
        keep = int(self.option("keep"))
        superseded = steps_in(self.shared)[:-keep] if keep else []
        if superseded:
            self.stage("retire")
        for step in superseded:
            self._retire(step_directory(self.shared, step))

    def _retire(self, directory: Path) -> None:
        # A directory that is half deleted must not have a checkpoint's name.
        old = directory.with_name(directory.name + ".old")
        directory.rename(old)
        shutil.rmtree(old)

    def _load(self, directory: Path, state: TrainState) -> None:
        own = directory / f"rank-{self.rank}.pt"
        # A rank that the saving world did not have takes the data position from rank 0's part; the rest of that is not used.
        own_part = torch.load(own if own.exists() else directory / "rank-0.pt", weights_only=True)
        state.load_state_dict(torch.load(directory / SHARED_PART, weights_only=True))
        state.load_rank_state_dict(own_part)


def save_synced(value: object, path: Path) -> None:
    """torch.save to a file whose bytes are on storage when this returns."""
    with path.open("wb") as file:
        torch.save(value, file)
        file.flush()
        os.fsync(file.fileno())
