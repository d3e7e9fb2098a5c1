"""C21: the tracker is only written at the end, and without one training starts again; the right shape is `dcp-async`."""

from __future__ import annotations

from chaosckpt.targets.api import Chosen, Intent, Nothing
from chaosckpt.targets.dcp_async import DcpAsync
from chaosckpt.training.state import TrainState

TRACKER = "latest_checkpointed_iteration.txt"


class TrackerAtTheEnd(DcpAsync):
    """The saves are complete and acknowledged; nothing leads to them."""

    name = "c21"

    def close(self) -> None:
        """Await the save under way. The fault: a job that is killed never comes here."""
        super().close()
        steps = self._complete()
        if self.rank == 0 and steps:
            (self.shared / TRACKER).write_text(str(steps[-1]))

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load what the tracker names. The other half of the fault: without a tracker this is a new run."""
        self.stage("discover")
        tracker = self.shared / TRACKER
        step = self.on_rank_zero(f"reading {tracker}", lambda: int(tracker.read_text()) if tracker.exists() else None)
        if step is None:
            return Nothing()
        self.stage("load")
        self.load(state, step)
        return Chosen(step)
