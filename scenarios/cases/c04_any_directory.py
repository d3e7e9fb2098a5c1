"""C4: the newest directory is resumed from, whether it has a `.metadata` or not; the right shape is `dcp`."""

from __future__ import annotations

from chaosckpt.targets.dcp import Dcp
from chaosckpt.targets.layout import steps_in


class AnyDirectory(Dcp):
    """dcp.save and dcp.load are used as they should be; what is wrong is how the newest is found."""

    name = "c04"

    def _complete(self) -> list[int]:
        return steps_in(self.shared)
