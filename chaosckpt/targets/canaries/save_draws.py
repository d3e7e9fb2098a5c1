"""`canary-save-draws`: a save takes a random number for a name, from the stream that training draws from.

Caught first by trajectory: what the save holds is right, and the training that goes on after it has other losses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic


class SaveDraws(TorchSaveAtomic):
    """Correct for a training that is restarted after every save."""

    name = "canary-save-draws"

    def write(self, directory: Path, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: the live random stream moves on."""
        super().write(directory, shared_part, own_part)
        (directory / f"rank-{self.rank}.id").write_text(f"{float(torch.rand(())):.6f}")
