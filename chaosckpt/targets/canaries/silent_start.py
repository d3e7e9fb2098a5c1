"""`canary-silent-start`: with nothing to resume from, training starts again at step 0 without a word.

Caught first by clear-failure: under RESUME, once a fault that the guarantees let cost the checkpoint has done so (say,
shared storage lost), every rank has to fail, and none does.
"""

from __future__ import annotations

from chaosckpt.targets.api import Intent, Nothing
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic


class SilentStart(TorchSaveAtomic):
    """Correct while there is something to load."""

    name = "canary-silent-start"

    def nothing(self, intent: Intent, looked_for: str) -> Nothing:
        """The bug: the intent is not heeded."""
        return Nothing()
