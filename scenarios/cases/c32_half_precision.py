"""C32: parameters are stored in a narrower type, and cast back by the load without a word; right: `torch-save-atomic`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic


class HalfPrecision(TorchSaveAtomic):
    """Half the bytes. Loading copies into parameters of the old type, so that nobody sees what was lost."""

    name = "c32"

    def write(self, directory: Path, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """Write. The fault: the cast."""
        model = {name: tensor.to(torch.bfloat16) for name, tensor in shared_part["model"].items()}
        super().write(directory, {**shared_part, "model": model}, own_part)
