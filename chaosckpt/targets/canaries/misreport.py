"""`canary-misreport`: a tracker file, written before the save it names, says which step was loaded.

Caught first by reported-step: after a crash in the middle of a save the tracker names that save, while the one before it
is loaded, which is the right one.
"""

from __future__ import annotations

from chaosckpt.targets.api import Chosen, Intent, Nothing, Pending
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class Misreport(TorchSaveAtomic):
    """Loads correctly, reports the tracker's step."""

    name = "canary-misreport"

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: the tracker is ahead of the checkpoint."""
        if self.rank == 0:
            tracker = self.shared / "latest.txt"
            tracker.with_suffix(".new").write_text(str(step))
            tracker.with_suffix(".new").rename(tracker)
        return super().save(state, step)

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load the newest complete checkpoint and report another."""
        answer = super().recover(state, intent)
        if isinstance(answer, Nothing):
            return answer
        return Chosen(self.on_rank_zero("reading latest.txt", lambda: int((self.shared / "latest.txt").read_text())))
