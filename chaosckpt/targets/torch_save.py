"""`torch-save`: the everyday torch.save, one rolling file a rank, written in place."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from chaosckpt.model.guarantee import Guarantee
from chaosckpt.targets.api import CheckpointError, Chosen, Done, Intent, Nothing, Pending, Target
from chaosckpt.targets.torch_save_atomic import load_file, own_file
from chaosckpt.training.state import TrainState


class TorchSave(Target):
    """Each rank writes all it holds over its previous file, so a crash during a save costs the checkpoint.

    It claims to survive nothing, and keeps to that honestly: a torn file, or files of different saves, are noticed and
    refused by all ranks alike.
    """

    name = "torch-save"
    guarantees: ClassVar[frozenset[Guarantee]] = frozenset()

    def save(self, state: TrainState, step: int) -> Pending:
        """Write this rank's file in place; return when every rank has."""
        self.stage("snapshot")
        value = {"shared": state.state_dict(), "own": state.rank_state_dict()}
        self.stage("persist")
        path = self._path()
        self.together(f"writing {path}", lambda: torch.save(value, path))
        return Done("shared")

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load this rank's file, if all ranks' files are whole and of one save."""
        self.stage("discover")
        value, found = self._read()
        everywhere = self.gather(found)
        if len(set(everywhere)) > 1 or value is None:
            held = ", ".join(f"rank {rank} found {what}" for rank, what in enumerate(everywhere))
            return self.nothing(intent, f"{self.shared / 'rank-*.pt'} of one save: {held}")
        self.stage("load")
        self._apply(state, value)
        return Chosen(state.step)

    def retained(self) -> Sequence[int]:
        """The step of the files, if all ranks' files are whole and of one save."""
        value, found = self._read()
        return [value["shared"]["step"]] if len(set(self.gather(found))) == 1 and value is not None else []

    def load(self, state: TrainState, step: int) -> None:
        """Load this rank's file. Raises CheckpointError on every rank if any rank's is not a whole one of this step."""
        self._apply(state, self.together(f"loading {self._path()}", lambda: self._read_step(step)))

    def _apply(self, state: TrainState, value: dict[str, Any]) -> None:
        state.load_state_dict(value["shared"])
        state.load_rank_state_dict(value["own"])

    def _read_step(self, step: int) -> dict[str, Any]:
        value, found = self._read()
        if value is None or value["shared"]["step"] != step:
            raise CheckpointError(f"{self._path()} should hold step {step}; found {found}")
        return value

    def _path(self) -> Path:
        return self.shared / own_file(self.rank)

    def _read(self) -> tuple[dict[str, Any] | None, str]:
        """The file's content, if it is whole, and what was found, in words that are equal only for one save's files."""
        path = self._path()
        try:
            value = load_file(path)
            attempt, step, _, world_size = value["own"]["stamp"].tolist()
        except FileNotFoundError:
            return None, "nothing"
        # All that torch.load says of a file cut short, by the place of the cut; OSError may be the storage's word as well.
        except (OSError, RuntimeError, EOFError, LookupError, ValueError, pickle.UnpicklingError) as error:
            return None, f"a torn file ({type(error).__name__})"
        return value, f"step {step} of attempt {attempt} by {world_size} ranks"
