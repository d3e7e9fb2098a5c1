"""C18: the saver thread and training use one process group; the right shape is `dcp-async`."""

from __future__ import annotations

import torch.distributed as dist

from chaosckpt.targets.dcp_async import DcpAsync


class SharedGroup(DcpAsync):
    """async_save without a word about its process group."""

    name = "c18"

    def saver_group(self) -> dist.ProcessGroup | None:
        """The fault: None is the group of training."""
        return None
