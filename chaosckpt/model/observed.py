"""Observed steps: what an observer saw of each optimizer step of a rank, as digests."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

GENERATORS = ("python-rng", "numpy-rng", "torch-rng")
"""The states of the global generators."""
PARTS = ("parameters", "optimizer", "scheduler", "buffers", "averages", *GENERATORS, "data", "gradients")
"""What a step is made of. Optimizer: its state for each parameter; scheduler: the numbers of its groups, such as the learning rate;
buffers: those of the modules that train; averages: weights that no optimizer holds, such as EMA's, or frozen ones, and the buffers of
modules that don't train; data: what entered the outermost module in training mode."""
SUFFIX = ".steps"
"""Of the files in which ranks leave their steps, each named by its process."""


class ObservedStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """One optimizer step of a rank. `before` are the digests of its parts, those that could be seen, as the step began; gradients
    and data are those that it used. `after` is that of the parameters when it was done."""

    rank: int
    before: dict[str, str]
    after: str = ""

    @property
    def effective(self) -> bool:
        """Whether it changed any parameter: some libraries make an optimizer's state by a step that doesn't."""
        return self.after != self.before.get("parameters", "")


_DECODER = msgspec.json.Decoder(ObservedStep)


def decoded(lines: Iterable[str]) -> list[ObservedStep]:
    """The steps of one process; a line that was cut short by a kill is left out."""
    found = []
    for line in lines:
        try:
            found.append(_DECODER.decode(line))
        except msgspec.MsgspecError:
            continue
    return found
