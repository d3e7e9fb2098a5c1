"""C8: the data loader's state is a file of its own, and only a warning when it is missing; right: `torch-save-atomic`."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from chaosckpt.model.scenario import Strategy
from chaosckpt.targets.api import Chosen, Done, Intent, Nothing, Pending, Target
from chaosckpt.targets.layout import step_directory, steps_in
from chaosckpt.targets.torch_save_atomic import load_file, save_synced
from chaosckpt.training.state import TrainState

MODEL, DATA = "model.pt", "data.pt"


class DataStateApart(Target):
    """Two files a step, for one rank, each complete when it has its name."""

    name = "c08"
    strategies: ClassVar[frozenset[Strategy]] = frozenset({"ddp"})

    def save(self, state: TrainState, step: int) -> Pending:
        """The model goes first. The fault: from then on the step counts as complete."""
        own = state.rank_state_dict()
        data = {"sampler": own.pop("sampler")}
        self.stage("persist")
        step_directory(self.shared, step).mkdir(exist_ok=True)
        self._put(step, MODEL, {"shared": state.state_dict(), "own": own})
        self._put(step, DATA, data)
        return Done("shared")

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load the newest model, and the data's position if it is there."""
        self.stage("discover")
        newest = max(
            (s for s in steps_in(self.shared) if (step_directory(self.shared, s) / MODEL).exists()), default=None
        )
        if newest is None:
            return self.nothing(intent, str(self.shared / "step-*" / MODEL))
        self.stage("load")
        model, data = load_file(step_directory(self.shared, newest) / MODEL), self._data(newest, state)
        state.load_state_dict(model["shared"])
        state.load_rank_state_dict({**model["own"], **data})
        return Chosen(newest)

    def _put(self, step: int, name: str, value: dict[str, Any]) -> None:
        path = step_directory(self.shared, step) / name
        save_synced(value, path.with_suffix(".tmp"))
        path.with_suffix(".tmp").rename(path)

    def _data(self, step: int, state: TrainState) -> dict[str, Any]:
        path = step_directory(self.shared, step) / DATA
        if path.exists():
            return load_file(path)
        sys.stderr.write(f"warning: {path} is missing; the data begins anew\n")
        return {"sampler": state.sampler.state_dict()}
