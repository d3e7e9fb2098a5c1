"""`dcp-async-overlapping`: PyTorch's asynchronous distributed checkpoint with two saves under way at once."""

from __future__ import annotations

from chaosckpt.targets.dcp_async import DcpAsync


class DcpAsyncOverlapping(DcpAsync):
    """As `dcp-async`, but a save may begin while the one before it is still being written.

    Each save under way has its own writer, its own copy of the state and its own process group: torch's are not made to
    be shared by two saves at a time. Checkpoints are retired in the order of their saves.
    """

    name = "dcp-async-overlapping"
    outstanding = 2
