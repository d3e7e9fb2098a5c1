"""`canary-pointer-early`: the file that names the newest checkpoint is advanced before the data is written.

Caught first by newest-complete: after a crash in the middle of a save the pointer names a directory that is not there,
and the one before it, which is required, is not tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic

POINTER = "latest"


class PointerEarly(TorchSaveAtomic):
    """Recovery loads what the pointer names."""

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
