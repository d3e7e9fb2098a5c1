"""`canary-exit-zero`: with nothing to resume from, the job ends as if it had succeeded.

Caught first by clear-failure: under RESUME, with nothing permitted, every rank has to exit non-zero, and each exits 0.
"""

from __future__ import annotations

import sys

from chaosckpt.targets.api import Intent, Nothing
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic


class ExitZero(TorchSaveAtomic):
    """Correct while there is something to load."""

    name = "canary-exit-zero"

    def nothing(self, intent: Intent, looked_for: str) -> Nothing:
        """The bug: the failure has a message and no exit status."""
        if intent is Intent.RESUME:
            sys.stderr.write(f"nothing to resume from in {looked_for}\n")
            sys.exit(0)
        return Nothing()
