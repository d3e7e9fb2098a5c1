"""Canaries that load one state from files of several saves, or of a save that is not complete."""

from __future__ import annotations

import contextlib
import pickle
from pathlib import Path
from typing import Any, ClassVar

import torch

from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.scenario import Strategy
from chaosckpt.targets.api import Chosen, Done, Intent, Nothing, Pending, Target
from chaosckpt.targets.layout import step_directory, steps_in
from chaosckpt.targets.torch_save_atomic import load_file, own_file, save_synced
from chaosckpt.training.state import TrainState

MARKER = "complete"


class Mixed(Target):
    """One rolling directory with a file a parameter, each replaced atomically, the whole not.

    Caught first by complete-only: after a crash in the middle of a save some parameters are of the new step and
    some of the old.

    Rank 0 writes the parameters and the rest, every rank its own part; the step is written last.
    """

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


class StaleShards(Target):
    """A step's directory is saved over without being cleared, and every shard in it is loaded.

    Caught first by complete-only: when a larger world's save of a step is interrupted and a smaller world saves
    that step again, the larger world's last shard is still there and overrides newer parameters.

    Each rank writes every world-size-th parameter; a marker says that all have.
    """

    name = "canary-stale-shards"
    guarantees: ClassVar[frozenset[Guarantee]] = frozenset({"process-crash", "world-size-change"})
    strategies: ClassVar[frozenset[Strategy]] = frozenset({"ddp"})

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: the directory may hold shards of an earlier attempt."""
        directory = step_directory(self.shared, step)
        self.stage("persist")
        self.on_rank_zero(f"opening {directory}", lambda: self._open(directory))
        value = state.state_dict()
        names = sorted(value["model"])[self.rank :: self.world_size]
        value["model"] = {name: value["model"][name] for name in names}
        shard = {"shared": value, "own": state.rank_state_dict()}
        self.together(f"writing {directory}", lambda: self._write(shard, directory / own_file(self.rank)))
        self.on_rank_zero(f"marking {directory}", (directory / MARKER).touch)
        return Done("shared")

    def recover(self, state: TrainState, intent: Intent) -> Chosen | Nothing:
        """Load every shard of the newest marked directory."""
        self.stage("discover")
        steps = [step for step in steps_in(self.shared) if (step_directory(self.shared, step) / MARKER).exists()]
        newest = self.broadcast(max(steps, default=None))
        if newest is None:
            return self.nothing(intent, str(self.shared / "step-*" / MARKER))
        self.stage("load")
        paths = sorted(step_directory(self.shared, newest).glob("rank-*.pt"))
        shards = self.together(f"loading {paths}", lambda: {path.name: load_file(path) for path in paths})
        own = shards.get(own_file(self.rank), shards[own_file(0)])
        model = {name: tensor for shard in shards.values() for name, tensor in shard["shared"]["model"].items()}
        state.load_state_dict({**shards[own_file(0)]["shared"], "model": model})
        state.load_rank_state_dict(own["own"])
        return Chosen(newest)

    def _write(self, shard: dict[str, Any], path: Path) -> None:
        save_synced(shard, path.with_suffix(".tmp"))
        path.with_suffix(".tmp").rename(path)

    def _open(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        (directory / MARKER).unlink(missing_ok=True)


class Torn(Target):
    """The highest-numbered directory is loaded, complete or not, and what is missing is passed over.

    Caught first by complete-only: after a crash in the middle of a save the parameters that have no file yet keep
    their initial values, so the loaded state equals no captured one.

    One file a parameter, written by rank 0 after all else.
    """

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
