"""The data order: which samples, by global index, each step consumes, whatever the number of ranks."""

from __future__ import annotations

from collections.abc import Mapping

import torch


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
