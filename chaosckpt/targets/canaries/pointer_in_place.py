"""`canary-pointer-in-place`: the file that names the newest checkpoint is rewritten in place.

Caught first by newest-complete: a crash between the truncation and the write leaves a pointer to nothing, where a
complete checkpoint, which is required, lies beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic

POINTER = "latest"


class PointerInPlace(TorchSaveAtomic):
    """Recovery loads what the pointer names."""

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
