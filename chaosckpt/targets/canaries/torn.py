"""`canary-torn`: the highest-numbered directory is loaded, complete or not, and what is missing is passed over.

Caught first by complete-only: after a crash in the middle of a save the parameters that have no file yet keep their
initial values, so the loaded state equals no captured one.
"""

from __future__ import annotations

import contextlib
import pickle
from typing import ClassVar

import torch

from chaosckpt.model.settings import Strategy
from chaosckpt.targets.api import Chosen, Done, Intent, Nothing, Pending, Target
from chaosckpt.targets.layout import step_directory, steps_in
from chaosckpt.targets.torch_save_atomic import load_file, own_file
from chaosckpt.workload.state import TrainState


class Torn(Target):
    """One file a parameter, written by rank 0 after all else."""

    name = "canary-torn"
    strategies: ClassVar[frozenset[Strategy]] = frozenset({"ddp"})

    def save(self, state: TrainState, step: int) -> Pending:
        """Write the rest of the state, then the parameters, one by one; nothing marks the end."""
        directory = step_directory(self.shared, step)
        self.stage("persist")
        directory.mkdir(exist_ok=True)
        torch.save(state.rank_state_dict(), directory / own_file(self.rank))
        self.barrier()
        if self.rank == 0:
            shared_part = state.state_dict()
            parameters = shared_part.pop("model")
            torch.save(shared_part, directory / "rest.pt")
            for name, tensor in parameters.items():
                torch.save(tensor, directory / f"{name}.pt")
        self.barrier()
        return Done("shared")

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """The bug: no check that the directory is complete, and a file that is missing or torn is passed over."""
        self.stage("discover")
        newest = self.broadcast(max((step for step in steps_in(self.shared) if self._usable(step)), default=None))
        if newest is None:
            return self.nothing(intent, str(self.shared / "step-*"))
        self.stage("load")
        directory = step_directory(self.shared, newest)
        shared_part = load_file(directory / "rest.pt")
        shared_part["model"] = state.state_dict()["model"]
        for name, _ in state.model.named_parameters():
            with contextlib.suppress(OSError, RuntimeError, EOFError, LookupError, pickle.UnpicklingError):
                shared_part["model"][name] = load_file(directory / f"{name}.pt")
        state.load_state_dict(shared_part)
        state.load_rank_state_dict(load_file(directory / own_file(self.rank)))
        return Chosen(newest)

    def _usable(self, step: int) -> bool:
        return (step_directory(self.shared, step) / "0.weight.pt").exists()
