"""Canaries that lose or change part of the training state: optimizer, scheduler, random streams, data position."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch

from chaosckpt.targets.api import Pending
from chaosckpt.targets.torch_save_atomic import TorchSaveAtomic, load_file, own_file
from chaosckpt.training.state import TrainState


class OptimizerLost(TorchSaveAtomic):
    """The optimizer is saved and not restored.

    Caught first by full-state: after any restart the optimizer's moments are those of a new optimizer.
    """

    name = "canary-optimizer-lost"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: what the optimizer holds now is loaded back into it."""
        super().apply(state, {**shared_part, "optimizer": state.state_dict()["optimizer"]}, own_part)


class SchedulerLost(TorchSaveAtomic):
    """The learning-rate scheduler begins again.

    Caught first by full-state: after any restart the scheduler counts from 0.
    """

    name = "canary-scheduler-lost"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: the scheduler keeps its own state."""
        super().apply(state, {**shared_part, "scheduler": copy.deepcopy(state.scheduler.state_dict())}, own_part)


class SamplerLost(TorchSaveAtomic):
    """The data position is not restored.

    Caught first by full-state: after any restart the sampler stands at the first sample, and the data is seen
    twice.
    """

    name = "canary-sampler-lost"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: the sampler keeps its own position."""
        super().apply(state, shared_part, {**own_part, "sampler": state.sampler.state_dict()})


class RngLost(TorchSaveAtomic):
    """The random streams are not restored.

    Caught first by full-state: after any restart every rank's streams are those of a new process.
    """

    name = "canary-rng-lost"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: the streams stay as they are."""
        super().apply(state, shared_part, {**own_part, "rng": state.rng.state_dict()})


class SharedRng(TorchSaveAtomic):
    """Every rank gets the random streams of rank 0.

    Caught first by full-state: after any restart of two ranks or more, rank 1's streams are not those it had.
    """

    name = "canary-shared-rng"

    def read(self, directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        """The bug: `rng` comes from rank 0's file."""
        shared_part, own_part = super().read(directory)
        return shared_part, {**own_part, "rng": load_file(directory / own_file(0))["rng"]}


class SaveAdvances(TorchSaveAtomic):
    """After a save the data loader is made anew, with the batch that it had fetched ahead lost.

    Caught first by exactly-once-data: what the save holds is right, and the training that goes on after it skips a batch.

    Correct for a training that is restarted after every save.
    """

    name = "canary-save-advances"

    def save(self, state: TrainState, step: int) -> Pending:
        """The bug: a save changes the live data position."""
        pending = super().save(state, step)
        state.sampler.next_batch()
        return pending


class SaveDraws(TorchSaveAtomic):
    """A save takes a random number for a name, from the stream that training draws from.

    Caught first by trajectory: what the save holds is right, and the training that goes on after it has other
    losses.

    Correct for a training that is restarted after every save.
    """

    name = "canary-save-draws"

    def write(self, directory: Path, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: the live random stream moves on."""
        super().write(directory, shared_part, own_part)
        (directory / f"rank-{self.rank}.id").write_text(f"{float(torch.rand(())):.6f}")


class AddedPositionLost(TorchSaveAtomic):
    """A rank that a larger world adds begins with the first sample.

    Caught first by full-state: the data position is global, and after a larger world's recovery the new ranks have
    another.

    Correct in the world that saved, and in every smaller one.
    """

    name = "canary-added-position-lost"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: a rank without a file of its own has no position."""
        if self.rank >= int(own_part["stamp"][3]):
            own_part = {**own_part, "sampler": state.sampler.state_dict()}
        super().apply(state, shared_part, own_part)


class AddedRngCopied(TorchSaveAtomic):
    """A rank that a larger world adds gets a copy of rank 0's random streams.

    Caught first by full-state: after a change of the world's size the streams of all ranks must be pairwise
    distinct.

    Correct in the world that saved, and in every smaller one.
    """

    name = "canary-added-rng-copied"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: the streams that a new rank derives are rank 0's."""
        super().apply(state, shared_part, own_part)
        if self.rank >= int(own_part["stamp"][3]):
            state.rng.seed(state.settings.seed, 0, state.step)


class AddedRngUnset(TorchSaveAtomic):
    """A rank that a larger world adds keeps the random streams with which its process began.

    Caught first by full-state: nothing has restored or derived them.

    Correct in the world that saved, and in every smaller one.
    """

    name = "canary-added-rng-unset"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: a rank without a file of its own has no streams to set."""
        streams = state.rng.state_dict()
        super().apply(state, shared_part, own_part)
        if self.rank >= int(own_part["stamp"][3]):
            state.rng.load_state_dict(streams)


class ResizedPosition(TorchSaveAtomic):
    """A world of another size converts the data position from a rank's samples, and rounds.

    Caught first by full-state: with a position that isn't a multiple of the new size, samples are seen twice.

    Correct in the world that saved.
    """

    name = "canary-resized-position"

    def apply(self, state: TrainState, shared_part: dict[str, Any], own_part: dict[str, Any]) -> None:
        """The bug: the position is cut to a whole number of this world's rounds."""
        if int(own_part["stamp"][3]) != self.world_size:
            sampler = own_part["sampler"]
            rounds = sampler["position"] // self.world_size
            own_part = {**own_part, "sampler": {**sampler, "position": rounds * self.world_size}}
        super().apply(state, shared_part, own_part)
