"""`canary-mixed`: one rolling directory with a file a parameter, each replaced atomically, the whole not.

Caught first by complete-only: after a crash in the middle of a save some parameters are of the new step and some of the
old.
"""

from __future__ import annotations

from typing import ClassVar

import torch

from chaosckpt.model.settings import Strategy
from chaosckpt.targets.api import Chosen, Done, Intent, Nothing, Pending, Target
from chaosckpt.targets.torch_save_atomic import load_file
from chaosckpt.workload.state import TrainState


class Mixed(Target):
    """Rank 0 writes the parameters and the rest, every rank its own part; the step is written last."""

    name = "canary-mixed"
    strategies: ClassVar[frozenset[Strategy]] = frozenset({"ddp"})

    def save(self, state: TrainState, step: int) -> Pending:
        """Replace one file after another. The bug: no file belongs to a generation."""
        self.stage("persist")
        if self.rank == 0:
            shared_part = state.state_dict()
            for name, tensor in shared_part.pop("model").items():
                self._replace(tensor, f"{name}.pt")
            self._replace(shared_part, "rest.pt")
        self._replace(state.rank_state_dict(), f"rank-{self.rank}.pt")
        self.barrier()
        return Done("shared")

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load whatever each file holds."""
        self.stage("discover")
        if not all(self.gather((self.shared / f"rank-{self.rank}.pt").exists() and (self.shared / "rest.pt").exists())):
            return self.nothing(intent, str(self.shared / "rest.pt"))
        self.stage("load")
        shared_part = load_file(self.shared / "rest.pt")
        shared_part["model"] = {
            name: load_file(self.shared / f"{name}.pt") for name, _ in state.model.named_parameters()
        }
        state.load_state_dict(shared_part)
        state.load_rank_state_dict(load_file(self.shared / f"rank-{self.rank}.pt"))
        return Chosen(state.step)

    def _replace(self, value: object, name: str) -> None:
        temporary = self.shared / f"{name}.tmp"
        torch.save(value, temporary)
        temporary.rename(self.shared / name)
