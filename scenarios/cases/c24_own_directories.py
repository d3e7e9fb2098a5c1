"""C24: dcp.save into each node's own directory, so that only one node has the `.metadata`; the right shape is `dcp`."""

from __future__ import annotations

from pathlib import Path

from chaosckpt.targets.api import Context
from chaosckpt.targets.dcp import Dcp


class OwnDirectories(Dcp):
    """The path is the same on every node, and what is behind it is not.

    The fault: the node's own directory is taken for one that all nodes see, also in the claim of what it survives.
    """

    name = "c24"
    tiers = frozenset({"local", "shared"})

    def __init__(self, context: Context) -> None:
        self._path = context.local

    @property
    def shared(self) -> Path:
        """This node's own directory."""
        return self._path
