"""`torch-save-checked`: torch-save-atomic with checksums, so that a checkpoint damaged at rest is passed over."""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import torch

from chaosckpt.model.guarantee import GUARANTEES
from chaosckpt.targets.api import CheckpointError
from chaosckpt.targets.layout import step_directory, steps_in
from chaosckpt.targets.torch_save_atomic import SHARED_PART, TorchSaveAtomic, own_file
from chaosckpt.training.state import TrainState


class TorchSaveChecked(TorchSaveAtomic):
    """Each rank writes a manifest with the SHA-256 of its files, which begins with the SHA-256 of the manifest itself.

    Damage is content that differs from what was written: such a checkpoint counts as none. A file that can't be read
    at all is an error of the storage, and fails the recovery instead: it may be there again at the next attempt.
    """

    name = "torch-save-checked"
    guarantees = GUARANTEES

    def write(self, directory: Path, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """Write and sync this rank's files, then its manifest."""
        parts = {SHARED_PART: shared_part} if self.rank == 0 else {}
        files = {}
        for name, part in {**parts, own_file(self.rank): own_part}.items():
            content = io.BytesIO()
            torch.save(part, content)
            write_synced(content.getvalue(), directory / name)
            files[name] = _sha256(content.getvalue())
        body = json.dumps({"world_size": self.world_size, "files": files}).encode()
        write_synced(f"{_sha256(body)}\n".encode() + body, directory / manifest_file(self.rank))

    def complete(self) -> list[int]:
        """The steps whose directory has its final name and is not damaged."""
        return [step for step in steps_in(self.shared) if self.damage(step) is None]

    def load(self, state: TrainState, step: int) -> None:
        """Load the directory of one step, if it is not damaged. Raises CheckpointError on every rank else."""
        damage = self.on_rank_zero(f"checking {step_directory(self.shared, step)}", lambda: self.damage(step))
        if damage is not None:
            raise CheckpointError(damage)
        super().load(state, step)

    def damage(self, step: int) -> str | None:
        """Which file of a step is not what was written, if any. Raises OSError for one that can't be read."""
        directory = step_directory(self.shared, step)
        rank, world_size = 0, 1
        while rank < world_size:
            digest, _, body = (directory / manifest_file(rank)).read_bytes().partition(b"\n")
            if digest.decode(errors="replace") != _sha256(body):
                return f"{directory / manifest_file(rank)} is damaged"
            manifest = json.loads(body)
            for name, expected in manifest["files"].items():
                if _sha256((directory / name).read_bytes()) != expected:
                    return f"{directory / name} is damaged"
            rank, world_size = rank + 1, manifest["world_size"]
        return None


def manifest_file(rank: int) -> str:
    """The name of the file with the checksums of what a rank wrote."""
    return f"rank-{rank}.manifest"


def write_synced(content: bytes, path: Path) -> None:
    """Write a file whose bytes are on storage when this returns."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
