"""The settings of the workload: which little training job is trained, and how large it is."""

from __future__ import annotations

from typing import Literal

import msgspec

Strategy = Literal["ddp", "fsdp2"]
AtEnd = Literal["await", "close", "exit"]

MOST_STEPS = 100_000
_AT_LEAST = {
    "steps": 1,
    "save_every": 1,
    "hidden": 1,
    "layers": 1,
    "batch": 1,
    "dataset": 1,
    "seed": 0,
    "outstanding": 1,
    "retries": 0,
}


class WorkloadSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is trained. None of it depends on the number of ranks, so that a run can go on with another number.

    The model is a multilayer perceptron of `layers` square layers of width `hidden` and a small head: about `4 * layers
    * hidden**2` bytes of parameters, and three times that in a checkpoint, because AdamW keeps two moments
    (hidden=4096, layers=2 is 134 MB of parameters and 403 MB of checkpoint). `batch` is the number of samples of one
    *global* step, which the ranks share out among themselves, out of `dataset` samples in all. A save follows every
    `save_every`-th step.

    Raises ValueError, with the offending value, when a setting can't be.
    """

    strategy: Strategy = "ddp"
    steps: int = 6
    save_every: int = 2
    hidden: int = 16
    layers: int = 2
    batch: int = 4
    dataset: int = 64
    dropout: float = 0.1
    seed: int = 0
    learning_rate: float = 1e-2
    outstanding: int = 1
    at_end: AtEnd = "await"
    destroys_group: bool = False
    retries: int = 0

    def __post_init__(self) -> None:
        for name, least in _AT_LEAST.items():
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"workload.{name} is {value}; it must be {least} or more")
        if self.steps > MOST_STEPS:
            raise ValueError(
                f"workload.steps is {self.steps}; it must be {MOST_STEPS} or less, since every trial trains them all"
            )
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"workload.dropout is {self.dropout}; it must be at least 0 and below 1")
        if not 0.0 < self.learning_rate < float("inf"):
            raise ValueError(f"workload.learning_rate is {self.learning_rate}; it must be above 0")
        if self.batch > self.dataset:
            raise ValueError(
                f"workload.batch is {self.batch}, more than the {self.dataset} samples of workload.dataset; "
                "one step may not see a sample twice, so raise dataset or lower batch"
            )

    def saves_after(self, step: int) -> bool:
        """Whether a save follows this step; one follows the last."""
        return step % self.save_every == 0 or step == self.steps

    @property
    def save_steps(self) -> tuple[int, ...]:
        """The steps that are saved, in order."""
        return tuple(filter(self.saves_after, range(1, self.steps + 1)))
