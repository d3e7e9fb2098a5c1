"""`canary-unbounded`: a new save begins whatever is still under way.

Caught first by bounded-saves: more saves are outstanding than the one that the target claims at most.
"""

from __future__ import annotations

from pathlib import Path

from chaosckpt.targets.layout import remove_tree
from chaosckpt.targets.torch_save_async import TorchSaveAsync


class Unbounded(TorchSaveAsync):
    """Copies of the state pile up in memory where storage is slow."""

    name = "canary-unbounded"

    def admit(self) -> None:
        """The bug: nothing is awaited."""

    def prepare(self, temporary: Path) -> None:
        """Only what an interrupted save of this step left may go: other saves are under way."""
        if temporary.exists():
            remove_tree(temporary)
        temporary.mkdir()
