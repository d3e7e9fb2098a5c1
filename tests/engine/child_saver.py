"""A target whose ranks save in a child process each, which a fault can kill by itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from chaosckpt.targets.api import CheckpointError
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic


class ChildSaver(TorchSaveAtomic):
    """torch-save-atomic, but every rank's files are written by a child that is forked for it and awaited."""

    name = "child-saver"

    def write(self, directory: Path, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        child = os.fork()
        if not child:
            try:
                super().write(directory, shared_part, own_part)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            self.ended_early(f"the process that wrote {directory} ended with status {status}")

    def ended_early(self, what: str) -> None:
        raise CheckpointError(what)


class Negligent(ChildSaver):
    """The bug: it passes over how the child has ended."""

    name = "negligent"

    def ended_early(self, what: str) -> None:
        pass
