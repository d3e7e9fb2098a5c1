"""Canaries whose recovery should refuse, with an error on every rank, and does something else."""

from __future__ import annotations

import sys
import threading
from typing import ClassVar

from chaosckpt.model.guarantee import GUARANTEES, Guarantee
from chaosckpt.targets.api import Chosen, Intent, Nothing
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.training.state import TrainState


class ExitZero(TorchSaveAtomic):
    """With nothing to resume from, the job ends as if it had succeeded.

    Caught first by clear-failure: under RESUME, with nothing permitted, every rank has to exit non-zero, and each
    exits 0.

    Correct while there is something to load.
    """

    name = "canary-exit-zero"

    def nothing(self, intent: Intent, looked_for: str) -> Nothing:
        """The bug: the failure has a message and no exit status."""
        if intent is Intent.RESUME:
            sys.stderr.write(f"nothing to resume from in {looked_for}\n")
            sys.exit(0)
        return Nothing()


class Hang(TorchSaveAtomic):
    """Recovery waits for a partial directory to become complete, which nobody will do.

    Caught first by clear-failure: after a crash in the middle of a save no rank resumes and none fails, without CPU
    time or an operation.

    Correct while no save was interrupted.
    """

    name = "canary-hang"

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """The bug: a directory with a temporary name is taken for a save that is still under way."""
        self.stage("discover")
        if self.on_rank_zero(f"listing {self.shared}", lambda: any(self.shared.glob("*.tmp"))):
            threading.Event().wait()
        return super().recover(state, intent)


class SilentStart(TorchSaveAtomic):
    """With nothing to resume from, training starts again at step 0 without a word.

    Caught first by clear-failure: under RESUME, once a fault that the guarantees let cost the checkpoint has done
    so (say, shared storage lost), every rank has to fail, and none does.

    Correct while there is something to load.
    """

    name = "canary-silent-start"

    def nothing(self, intent: Intent, looked_for: str) -> Nothing:
        """The bug: the intent is not heeded."""
        return Nothing()


class Trusting(TorchSaveAtomic):
    """It promises to notice damaged files, and loads whatever it can.

    Caught first by complete-only: a bit flipped in a tensor at rest is in the loaded state, which equals no
    captured one.

    `torch-save-atomic`; the bug is the claim.
    """

    name = "canary-trusting"
    guarantees: ClassVar[frozenset[Guarantee]] = GUARANTEES
