"""C15: retention counts whatever has a checkpoint's name, such as another run's remains; right: `dcp` with keep = 1."""

from __future__ import annotations

from typing import ClassVar

from chaosckpt.targets.dcp import METADATA, Dcp
from chaosckpt.targets.layout import remove_tree, step_directory, steps_in


class CountsRemains(Dcp):
    """Keeps the newest directory.

    The fault: the highest number needn't be a checkpoint, and needn't be this run's.
    """

    name = "c15"
    options: ClassVar = {**Dcp.options, "keep": 1}

    def retire(self) -> None:
        """Remove all directories but the highest-numbered."""
        self.stage("retire")
        if self.rank == 0:
            for step in steps_in(self.shared)[:-1]:
                directory = step_directory(self.shared, step)
                (directory / METADATA).unlink(missing_ok=True)
                remove_tree(directory)
