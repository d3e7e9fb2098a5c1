"""`canary-space-ignored`: a full disk is logged and passed over, and the save goes on.

Caught first by durable-acknowledgement: the directory is committed and acknowledged with a file cut short, and can't be loaded.
"""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Any

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic

FULL = (errno.ENOSPC, errno.EDQUOT)


class SpaceIgnored(TorchSaveAtomic):
    """Correct while there is space."""

    name = "canary-space-ignored"

    def write(self, directory: Path, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: "no space left" is no reason to stop."""
        try:
            super().write(directory, shared_part, own_part)
        except (OSError, RuntimeError) as error:  # torch.save's writer may wrap the error.
            if not _is_full(error):
                raise
            sys.stderr.write(f"no space for {directory}: {error}\n")


def _is_full(error: BaseException | None) -> bool:
    """Whether a full disk is this error, or what lies behind it."""
    if error is None:
        return False
    return getattr(error, "errno", None) in FULL or _is_full(error.__cause__ or error.__context__)
