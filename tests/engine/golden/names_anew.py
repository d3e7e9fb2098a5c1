"""A target whose saves write under names that are new each time: a UUID, and a token in base64."""

from __future__ import annotations

import secrets
import uuid

import torch

from chaosckpt.targets.api import Done, Pending
from chaosckpt.targets.torch_save import TorchSave
from chaosckpt.training.state import TrainState


class NamesAnew(TorchSave):
    """torch-save, but each file is written elsewhere and then renamed, and its data lies beside it."""

    name = "names-anew"

    def save(self, state: TrainState, step: int) -> Pending:
        path = self.shared / f"rank-{self.rank}.pt"
        value = {"shared": state.state_dict(), "own": state.rank_state_dict()}
        batched = self.shared / "batched"
        batched.mkdir(exist_ok=True)
        temporary = path.with_name(f"{path.name}.{uuid.uuid4()}")
        self.together(f"writing {path}", lambda: torch.save(value, temporary))
        (batched / secrets.token_urlsafe(12)).write_bytes(b"data")
        temporary.replace(path)
        return Done("shared")
