"""`canary-thread-error-lost`: an error of the writer thread is logged there, and nobody hears of it.

Caught first by durable-acknowledgement: after an error in a write the checkpoint is committed and acknowledged with a file missing or
cut short, and can't be loaded.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from chaosckpt.targets.torch_save_async import TorchSaveAsync


class ThreadErrorLost(TorchSaveAsync):
    """Correct while nothing fails."""

    name = "canary-thread-error-lost"

    def write(self, directory: Path, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: the future never gets the exception."""
        try:
            super().write(directory, shared_part, own_part)
        except (OSError, RuntimeError) as error:
            sys.stderr.write(f"could not write {directory}: {error}\n")
