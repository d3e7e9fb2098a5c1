"""`canary-shared-rng`: every rank gets the random streams of rank 0.

Caught first by full-state: after any restart of two ranks or more, rank 1's streams are not those it had.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic, load_file, own_file


class SharedRng(TorchSaveAtomic):
    """Restores all but each rank's own streams."""

    name = "canary-shared-rng"

    def read(self, directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        """The bug: `rng` comes from rank 0's file."""
        shared_part, own_part = super().read(directory)
        return shared_part, {**own_part, "rng": load_file(directory / own_file(0))["rng"]}
