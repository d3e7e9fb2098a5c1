"""Certificates: what a drill asked of a checkpointer, step by step with its evidence; `drill --json` prints one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from chaosckpt.measure.measurement import FileSystem, Provenance
from chaosckpt.model.guarantee import Guarantee

FORMAT = 1
"""Of the JSON; raised when a key changes its meaning."""

Outcome = Literal["survived", "failed clearly", "failed", "not tested"]
"""What became of the training state at one failure boundary.

survived: what had to be there was restored, whole. failed clearly: it was not, and every rank ended with an error that names what it
looked for. failed: wrong state, a silent start at step 0, a hang, or an error that says nothing. not tested: nobody knows.
"""
_ORDER: tuple[Outcome, ...] = ("failed", "failed clearly", "not tested", "survived")
"""Of several outcomes the first one of these is that of all together."""
StepName = Literal[
    "save and confirm",
    "end and fresh allocation",
    "restore and verify",
    "train on",
    "interrupt a later save",
    "world-size change",
    "another interpreter",
]
STEPS: tuple[StepName, ...] = StepName.__args__  # type: ignore[attr-defined]
"""In the order in which a drill takes them, counted from 1."""


def worst(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of several tests together; not tested where there are none."""
    return min(outcomes, key=_ORDER.index, default="not tested")


class PartCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the state on one rank (None: of all ranks together): fingerprints of what was captured and of what was restored.

    An empty `expected` means that there is nothing to compare with, for the reason in `note`.
    """

    rank: int | None
    part: str
    expected: str
    seen: str
    equal: bool
    note: str = ""


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the drill. `held` is True only when it was asked for, tested, and all that it asks was so."""

    number: int
    name: StepName
    asked: bool = True
    outcome: Outcome
    held: bool
    sentence: str
    evidence: tuple[str, ...] = ()
    parts: tuple[PartCheck, ...] = ()


class Interruption(msgspec.Struct, frozen=True, kw_only=True):
    """One kill of the job in the later save. `resumed_from` is the step with which the job went on; None: it did not go on."""

    at: str
    label: str
    outcome: Outcome
    held: bool
    resumed_from: int | None
    sentence: str


class Boundary(msgspec.Struct, frozen=True, kw_only=True):
    """One failure boundary. `guarantee` is the promise that covers it, where one does; `promised` whether the target makes it."""

    name: str
    guarantee: Guarantee | None = None
    promised: bool = False
    outcome: Outcome
    sentence: str
    steps: tuple[int, ...] = ()


class AllocatedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A rank's process as it saw itself when it began. `allocation`: which of the drill's allocations it belonged to."""

    allocation: str
    rank: int
    pid: int
    executable: str
    environment: tuple[str, ...]
    temporary: str
    """The path of its temporary directory, which is gone when the allocation has ended."""
    filters: int


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """What was trained after a restore, beside the golden trajectory. Losses are sums over the ranks, by step."""

    steps: tuple[int, ...]
    losses: tuple[float, ...]
    golden: tuple[float, ...]
    bitwise: bool
    tolerance: float = 0.0

    @property
    def largest_difference(self) -> float:
        return max((abs(seen - right) for seen, right in zip(self.losses, self.golden, strict=True)), default=0.0)

    @property
    def within(self) -> bool:
        """Whether it is the golden trajectory: bit for bit, or within the tolerance that the scenario declares."""
        return self.bitwise or 0 < self.tolerance >= self.largest_difference


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """The restart test of one scenario. `versions` has a set of versions for each side: `saved`, `restored`, and `restored elsewhere`
    where another interpreter was asked for. `limits` are sentences: what this drill can't say."""

    format: int = FORMAT
    scenario: str
    target: str
    strategy: str
    topology: str
    guarantees: tuple[Guarantee, ...]
    known_step: int
    later_step: int
    gate: str
    steps: tuple[StepResult, ...]
    boundaries: tuple[Boundary, ...]
    interruptions: tuple[Interruption, ...] = ()
    trajectory: Trajectory | None = None
    processes: tuple[AllocatedProcess, ...] = ()
    versions: dict[str, dict[str, str]] = {}
    file_systems: tuple[FileSystem, ...] = ()
    limits: tuple[str, ...] = ()
    provenance: Provenance | None = None
    """None where no command line asked for it."""

    @property
    def held(self) -> bool:
        """Whether all that was asked held."""
        return all(step.held for step in self.steps if step.asked)

    @property
    def exit_code(self) -> int:
        """0: all that was asked held. 1: something failed. 3: nothing failed, but something that was asked could not be tested."""
        if self.held:
            return 0
        broken = [step for step in self.steps if step.asked and not step.held]
        return 1 if any(step.outcome != "not tested" for step in broken) else 3
