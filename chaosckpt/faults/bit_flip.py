"""One bit of a file is turned over at rest: a medium or a controller that decays without a word.

What it destroys: the content of one file of a checkpoint.
Survived by: `integrity`. A target that promises it notices: the damaged checkpoint is passed over or refused, never loaded.
How it heals: never; the next saves are sound.
Evidence: the byte that was changed, with its modification times as they were. Without that file, the fault is not injected.

Opt-in: drawn only where the scenario names it in [faults.kinds].
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec
from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.fault import Fault, JobControl
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.mutation import FlipBit
from chaosckpt.model.operation import tier_of
from chaosckpt.model.phrasing import describe_path


class BitFlip(Fault, frozen=True, tag="bit-flip"):
    """Turn over bit `bit` of byte `offset` (modulo the file's size) of one file, before the attempt starts."""

    between: ClassVar[bool] = True
    blurs: ClassVar[bool] = True
    weight: ClassVar[float] = 0.0
    needs: ClassVar[frozenset[Guarantee]] = frozenset({"integrity"})

    path: str
    offset: int = 0
    bit: int = 0
    node: int | None = None

    def __post_init__(self) -> None:
        if self.offset < 0 or not 0 <= self.bit <= 7:
            raise ValueError(f"offset = {self.offset} must not be negative, bit = {self.bit} must lie between 0 and 7")

    def prepare(self, job: JobControl) -> str | None:
        return job.mutate(tier_of(self.path), self.node, FlipBit(self.path, self.offset, self.bit))

    def simpler(self) -> Iterable[BitFlip]:
        if self.bit:
            yield msgspec.structs.replace(self, bit=0)

    def describe(self) -> str:
        where = "" if self.node is None else f" of node {self.node}"
        return f"bit {self.bit} of byte {self.offset} of {describe_path(self.path)}{where} flipped at rest"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[BitFlip] | None:
        """Anywhere in a file that the recovery reads: its length is not known, so offsets go round."""
        files = context.files_read()
        if not files:
            return None
        return st.builds(
            lambda file, offset, bit: cls(file[0], offset, bit, file[1]),
            st.sampled_from(files),
            st.integers(0, (1 << 20) - 1),
            st.integers(0, 7),
        )
