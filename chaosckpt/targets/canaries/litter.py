"""`canary-litter`: every save writes into a temporary directory with a name of its own, and nobody removes those.

Caught first by bounded-leftovers: what crashes leave behind grows beyond what the target declares, which is nothing.
"""

from __future__ import annotations

from typing import ClassVar

from chaosckpt.targets.api import Done, Pending
from chaosckpt.targets.layout import step_directory
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic
from chaosckpt.workload.state import TrainState


class Litter(TorchSaveAtomic):
    """Correct in all but its remains."""

    name = "canary-litter"
    abandoned: ClassVar[int] = 0

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: the name has the attempt in it, so that a later attempt doesn't meet it again."""
        final = step_directory(self.shared, step)
        temporary = final.with_name(f"{final.name}.attempt-{self.context.attempt}.tmp")
        self.stage("snapshot")
        shared_part, own_part = state.state_dict(), state.rank_state_dict()
        self.stage("persist")
        self.on_rank_zero(f"making {temporary}", temporary.mkdir)
        self.together(f"writing {temporary}", lambda: self.write(temporary, shared_part, own_part))
        self.stage("commit")
        self.on_rank_zero(f"committing {final}", lambda: self.commit(temporary, final))
        return Done("shared")
