"""C5: the directory that an interrupted save left is in the way of the next save of that step; the right shape is `dcp`."""

from __future__ import annotations

from pathlib import Path

from chaosckpt.targets.dcp import Dcp


class LeftoverBlocks(Dcp):
    """A save makes its directory, which must be new: so much caution protects an older checkpoint, and blocks its successors."""

    name = "c05"

    def clear(self, directory: Path) -> None:
        """The fault: what is there is never taken for remains."""
        directory.mkdir()
