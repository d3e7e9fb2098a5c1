"""The end of a file is gone at rest: a repaired file system, an interrupted copy, a full disk that nobody noticed.

What it destroys: the content of one file of a checkpoint.
Survived by: `integrity`. A target that promises it notices: the damaged checkpoint is passed over or refused, never loaded.
How it heals: never; the next saves are sound.
Evidence: the bytes that were taken off. Without that file, the fault is not injected.

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
from chaosckpt.model.mutation import CutOff
from chaosckpt.model.operation import tier_of
from chaosckpt.model.phrasing import describe_path

EVERYTHING = 1 << 40


class Truncation(Fault, frozen=True, tag="truncation"):
    """Take the last `missing_bytes` bytes off one file, all of them where it has no more, before the attempt starts."""

    between: ClassVar[bool] = True
    blurs: ClassVar[bool] = True
    weight: ClassVar[float] = 0.0
    needs: ClassVar[frozenset[Guarantee]] = frozenset({"integrity"})

    path: str
    missing_bytes: int = 1
    node: int | None = None

    def __post_init__(self) -> None:
        if self.missing_bytes < 1:
            raise ValueError(f"missing_bytes = {self.missing_bytes} must be 1 or more")

    def prepare(self, job: JobControl) -> str | None:
        return job.mutate(tier_of(self.path), self.node, CutOff(self.path, self.missing_bytes))

    def simpler(self) -> Iterable[Truncation]:
        if self.missing_bytes != EVERYTHING:
            yield msgspec.structs.replace(self, missing_bytes=EVERYTHING)

    def describe(self) -> str:
        where = "" if self.node is None else f" of node {self.node}"
        file = f"{describe_path(self.path)}{where}"
        if self.missing_bytes >= EVERYTHING:
            return f"{file} emptied at rest"
        missing = "byte" if self.missing_bytes == 1 else f"{self.missing_bytes} bytes"
        return f"last {missing} of {file} cut off at rest"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[Truncation] | None:
        files = context.files_read()
        if not files:
            return None
        return st.builds(
            lambda file, missing: cls(file[0], missing, file[1]),
            st.sampled_from(files),
            st.sampled_from((EVERYTHING, 1, 64, 4096)),
        )
