"""C3, the right shape: recovery goes back, checkpoint by checkpoint, until one can be loaded by every rank."""

from __future__ import annotations

from chaosckpt.targets.api import CheckpointError, Chosen, Intent, Nothing
from chaosckpt.targets.canaries.markers import EarlyMarker
from chaosckpt.training.state import TrainState


class FallsBack(EarlyMarker):
    """Its marker still tells little; so recovery doesn't believe it, and asks every rank whether it could read all."""

    name = "c03-right"

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load the newest checkpoint that can be loaded."""
        self.stage("discover")
        unreadable = []
        for step in reversed(self.retained()):
            self.stage("load")
            try:
                self.load(state, step)
            except CheckpointError as error:  # raised by every rank alike
                unreadable.append(str(error))
                continue
            return Chosen(step)
        return self.nothing(intent, f"{self.shared}/step-* {' '.join(unreadable)}")
