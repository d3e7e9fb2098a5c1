"""`canary-scheduler-lost`: the learning-rate scheduler begins again.

Caught first by full-state: after any restart the scheduler counts from 0.
"""

from __future__ import annotations

import copy
from typing import Any

from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class SchedulerLost(TorchSaveAtomic):
    """Restores all but the scheduler."""

    name = "canary-scheduler-lost"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: the scheduler keeps its own state."""
        super().apply(state, {**shared_part, "scheduler": copy.deepcopy(state.scheduler.state_dict())}, own_part)
