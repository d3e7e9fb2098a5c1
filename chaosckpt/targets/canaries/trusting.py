"""`canary-trusting`: it promises to notice damaged files, and loads whatever it can.

Caught first by complete-only: a bit flipped in a tensor at rest is in the loaded state, which equals no captured one.
"""

from __future__ import annotations

from typing import ClassVar

from chaosckpt.model.guarantee import GUARANTEES, Guarantee
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic


class Trusting(TorchSaveAtomic):
    """`torch-save-atomic`; the bug is the claim."""

    name = "canary-trusting"
    guarantees: ClassVar[frozenset[Guarantee]] = GUARANTEES
