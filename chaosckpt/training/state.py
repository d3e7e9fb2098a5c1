"""The training state as a target sees it: everything that a checkpoint must bring back, in full or in shards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict

from chaosckpt.model.scenario import Strategy, WorkloadSettings
from chaosckpt.training.rng import RandomStreams


class Sampler:
    """Walks through one permutation of the data set after another; its position is state.

    `position` counts the samples consumed by all ranks together since the beginning of training, so that a run can go
    on with another number of ranks and still see each sample once an epoch. Epoch e's permutation is a pure function of
    (seed, e) and draws from a generator of its own, never from the ranks' random streams.
    """

    def __init__(self, dataset: int, batch: int, seed: int) -> None:
        self.dataset = dataset
        self.batch = batch
        self.seed = seed
        self.position = 0
        self._epoch = -1
        self._permutation: list[int] = []

    def next_batch(self) -> list[int]:
        """The global indices of the next global step, in order. The end of an epoch may lie within a batch."""
        indices = [self._index(self.position + offset) for offset in range(self.batch)]
        self.position += self.batch
        return indices

    def _index(self, position: int) -> int:
        epoch, offset = divmod(position, self.dataset)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
            self._permutation = torch.randperm(self.dataset, generator=generator).tolist()
            self._epoch = epoch
        return self._permutation[offset]

    def state_dict(self) -> dict[str, int]:
        """`position`, `dataset` and `seed`, the last two so that a change of the data is noticed."""
        return {"position": self.position, "dataset": self.dataset, "seed": self.seed}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on from a captured position. Raises ValueError when it was captured over other data or another seed."""
        captured = (state["dataset"], state["seed"])
        if captured != (self.dataset, self.seed):
            raise ValueError(
                f"the sampler's state was captured over {captured[0]} samples with seed {captured[1]}; "
                f"this job has {self.dataset} samples and seed {self.seed}"
            )
        self.position = state["position"]


NEVER_CAPTURED = -1
_FULL = StateDictOptions(full_state_dict=True)


class TrainState:
    """One rank's live training state.

    Attributes: `rank`, `world_size`, `strategy`; `model` (the raw module, never a wrapper), `optimizer`, `scheduler`,
    `sampler`, `rng`; `step` (steps completed, 0 before the first); `stamp`, an int64 tensor [attempt, step, rank, world
    size] that says where this rank's own part of the state was captured. The training loop refreshes the stamp in place
    after every step; loading a checkpoint brings back the stamp of its capture, by which a mix of two generations can
    be told.

    A checkpoint has two parts. The *shared* part (`state_dict`) is the same for any number of ranks. The *rank's own*
    part (`rank_state_dict`) is its random streams, its data position and its stamp. `sharded_state_dict` holds both at
    once for torch's distributed checkpoint. Values returned may alias live tensors: a target that goes on writing while
    training goes on has to copy them first.
    """

    def __init__(
        self,
        settings: WorkloadSettings,
        rank: int,
        world_size: int,
        attempt: int,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        scheduler: torch.optim.lr_scheduler.LRScheduler,
    ) -> None:
        self.settings = settings
        self.rank = rank
        self.world_size = world_size
        self.attempt = attempt
        self.model = model
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.sampler = Sampler(settings.dataset, settings.batch, settings.seed)
        self.rng = RandomStreams()
        self.step = 0
        self.stamp = torch.tensor([attempt, NEVER_CAPTURED, rank, world_size], dtype=torch.int64)

    @property
    def strategy(self) -> Strategy:
        """How parameters lie on the ranks: `ddp` (replicated) or `fsdp2` (sharded along dimension 0)."""
        return self.settings.strategy

    def refresh_stamp(self) -> None:
        """Make the stamp say that the state is now this attempt's, at this step."""
        self.stamp.copy_(torch.tensor([self.attempt, self.step, self.rank, self.world_size], dtype=torch.int64))

    def state_dict(self) -> dict[str, Any]:
        """The shared part, whole on every rank: `model`, `optimizer`, `scheduler` and `step`.

        Under fsdp2 this gathers: every rank has to call it.
        """
        model, optimizer = get_state_dict(self.model, self.optimizer, options=_FULL)
        return {"model": model, "optimizer": optimizer, "scheduler": self.scheduler.state_dict(), "step": self.step}

    def load_state_dict(self, loaded: Mapping[str, Any]) -> None:
        """Load what `state_dict` returned, in this or in another world size. Under fsdp2 every rank has to call it."""
        self._load_shared(loaded, _FULL)

    def rank_state_dict(self) -> dict[str, Any]:
        """This rank's own part: `rng` (a dict of tensors), `sampler` (a dict of int), `stamp` (int64 tensor [4])."""
        return {"rng": self.rng.state_dict(), "sampler": self.sampler.state_dict(), "stamp": self.stamp.clone()}

    def load_rank_state_dict(self, loaded: Mapping[str, Any]) -> None:
        """Load a rank's own part, after the shared part.

        Captured in the same world size, all of it is loaded as it is. Captured in another world size (any rank's will
        do, since the data position is global), the data position is loaded, the random streams are derived from (seed,
        rank, step), so that they are distinct and reproducible, and the stamp stays `never captured`.
        """
        self.sampler.load_state_dict(loaded["sampler"])
        if int(loaded["stamp"][3]) == self.world_size:
            self.rng.load_state_dict(loaded["rng"])
            self.stamp.copy_(loaded["stamp"])
        else:
            self.derive_rank_state()

    def derive_rank_state(self) -> None:
        """Seed the random streams from (seed, rank, step): for a rank that has no part of its own in the checkpoint."""
        self.rng.seed(self.settings.seed, self.rank, self.step)
        self.stamp[1] = NEVER_CAPTURED

    def sharded_state_dict(self, with_rank_state: bool = True) -> dict[str, Any]:
        """Both parts for `torch.distributed.checkpoint`: this rank's shards, and its own part under its key `rank{r}`.

        To load, take this as the template. With `with_rank_state=False` the rank's own part is left out: needed when
        the checkpoint was saved in another world size (`saved_world_size` tells), because its keys are then missing or
        another rank's.
        """
        model, optimizer = get_state_dict(self.model, self.optimizer)
        state: dict[str, Any] = {
            "model": model,
            "optimizer": optimizer,
            "scheduler": self.scheduler.state_dict(),
            "step": self.step,
            "sampler": self.sampler.state_dict(),
        }
        if with_rank_state:
            state[f"rank{self.rank}"] = {"rng": self.rng.state_dict(), "stamp": self.stamp.clone()}
        return state

    def load_sharded_state_dict(self, loaded: Mapping[str, Any]) -> None:
        """Load what `sharded_state_dict` returned, once its values were read from a checkpoint.

        Without this rank's own part the random streams are derived as in `load_rank_state_dict`.
        """
        self._load_shared(loaded, StateDictOptions())
        self.sampler.load_state_dict(loaded["sampler"])
        own = loaded.get(f"rank{self.rank}")
        if own is None:
            self.derive_rank_state()
        else:
            self.rng.load_state_dict(own["rng"])
            self.stamp.copy_(own["stamp"])

    def _load_shared(self, loaded: Mapping[str, Any], options: StateDictOptions) -> None:
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=loaded["model"],
            optim_state_dict=loaded["optimizer"],
            options=options,
        )
        self.scheduler.load_state_dict(loaded["scheduler"])
        self.step = int(loaded["step"])


def saved_world_size(keys: Iterable[str]) -> int:
    """How many ranks saved their own part, from the keys of a distributed checkpoint's `state_dict_metadata`."""
    return sum(1 for key in keys if key.startswith("rank") and key.endswith(".stamp"))


def stamp_of(stamp: Tensor) -> tuple[int, int, int, int]:
    """A stamp as (attempt, step, rank, world size)."""
    attempt, step, rank, world_size = stamp.tolist()
    return attempt, step, rank, world_size
