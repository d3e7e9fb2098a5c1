"""`canary-in-place`: the only checkpoint is rewritten in place.

Caught first by newest-complete: a crash during the second save leaves torn files, recovery refuses them (clearly), and
the first save, acknowledged and required, is gone.
"""

from __future__ import annotations

from typing import ClassVar

from chaosckpt.model.guarantee import Guarantee
from chaosckpt.targets.torch_save import TorchSave


class InPlace(TorchSave):
    """`torch-save`; the bug is the claim."""

    name = "canary-in-place"
    guarantees: ClassVar[frozenset[Guarantee]] = frozenset({"process-crash"})
