"""What ranks report to their node, and what a node tells the trial runner by itself: frozen values, sent as MessagePack."""

from __future__ import annotations

from typing import Literal

import msgspec

from chaosckpt.model.digest import StateDigest
from chaosckpt.model.journal import (
    Acknowledged,
    Audited,
    Finished,
    Outstanding,
    Raised,
    Recovered,
    RecoveryStarted,
    SaveFailed,
    SaveStarted,
    StepTrace,
)
from chaosckpt.model.operation import Operation
from chaosckpt.training.metered import Metered

Cause = Literal["self", "fault", "harness"]
"""Who ended a process, as in the journal."""


class Rendezvous(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """Where rank 0 of the attempt serves the process group's store."""

    host: str
    port: int


class StageMark(msgspec.Struct, frozen=True, tag_field="event", tag="mark"):
    """A stage mark by the target."""

    rank: int
    stage: str


class Stepping(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """A rank is about to train this step: the coordinate of its training thread, where a fault may hold it."""

    rank: int
    step: int


class Retained(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """The steps that the target of an auditing rank lists as retained; None where it offers no list."""

    rank: int
    steps: tuple[int, ...] | None


class Referred(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """A reference job: what one rank had before its first step and after each save step (`digest`), and how it trained a step."""

    rank: int
    step: int
    trained: StepTrace | None = None
    digest: StateDigest | None = None


class RankEnvironment(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """What a rank finds around it when its program begins.

    `began` is the start of its process in the kernel's ticks; `argv`, and the names in `environment`, are what it was started with.
    `filters` counts the seccomp filters in force (-1: the kernel doesn't tell). `local_files` lie on its node-local tier.
    """

    rank: int
    pid: int
    began: str
    argv: tuple[str, ...]
    executable: str
    environment: tuple[str, ...]
    temporary: str
    local_files: tuple[str, ...]
    filters: int
    versions: dict[str, str]


class Measured(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """What a measuring rank has measured since it last told."""

    metered: Metered


Report = (
    RecoveryStarted | Recovered | SaveStarted | Outstanding | SaveFailed | Acknowledged | Finished | Raised | Rendezvous | StageMark
    | Stepping | Audited | Retained | Referred | Measured | RankEnvironment
)  # fmt: skip
"""What a rank reports. It waits for one byte after each, so that a report and a fault can't overtake one another."""


class Held(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """A trigger of a fault is reached: the operation is held. `fault` is -1 where the rank is single-stepped."""

    fault: int
    trigger: int
    operation: Operation
    label: str


class Struck(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """A fault answered an operation by itself (an errno, a short write). The first time in an attempt, `first` is true."""

    fault: int
    operation: Operation
    label: str
    error: str
    first: bool


class Exited(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """A rank's process is gone and reaped. `by` as in the journal."""

    rank: int
    status: int
    by: Cause
    stderr_tail: str
    operations: int
    untraced: tuple[str, ...]


class Trouble(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """The node can't go on: harness trouble, never a finding."""

    what: str


Push = Report | Held | Struck | Exited | Trouble
"""What a node process tells the trial runner by itself, in order."""


class Labelled(msgspec.Struct, frozen=True):
    """An operation of a recorded run with the phase in which its rank was: ("recover", None) or ("save", step)."""

    operation: Operation
    order: int
    """Counts the operations of all ranks of the node, in the order of their effects."""
    phase: str
    step: int | None
    stage: str
