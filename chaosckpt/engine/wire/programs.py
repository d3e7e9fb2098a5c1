"""The programs that a rank can run, as values: each with what its own run is told. The code is in chaosckpt/engine/rank."""

from __future__ import annotations

import msgspec

from chaosckpt.commands.launches import LearnedLaunch
from chaosckpt.training.metered import MeasureKind


class TrainingProgram(msgspec.Struct, frozen=True, kw_only=True, tag_field="program", tag="training"):
    """Recover with the target under test, train, and save on the way."""

    recover_only: bool = False
    """End behind the recovery."""
    stop_after: int | None = None
    """End the job in order once the save of this step is acknowledged."""
    report_environment: bool = False
    """Report, before the target is made, what the rank finds around it (RankEnvironment)."""


class AuditProgram(msgspec.Struct, frozen=True, kw_only=True, tag_field="program", tag="audit"):
    """Recover nothing and train nothing; load each of these retained steps and report it (Audited)."""

    steps: tuple[int, ...]
    recovers: bool = False
    """Where the target lists nothing: recover, as after a crash, and report what was chosen as an audit of the only step."""


class ReferenceProgram(msgspec.Struct, frozen=True, kw_only=True, tag_field="program", tag="reference"):
    """Train without any target, from the state that an earlier reference job exported, and export on the way.

    `source` is the directory of that export, empty for a start from step 0; `kept` has, for each rank, whether it gets its own random
    streams back. `directory` receives the exports, `DIRECTORY/STEP/`, after each save step.
    """

    source: str
    kept: tuple[bool, ...]
    directory: str


class MeasuringProgram(msgspec.Struct, frozen=True, kw_only=True, tag_field="program", tag="measuring"):
    """Measure what saving or restarting costs, and report that (Measured)."""

    kind: MeasureKind
    warm_up: int = 0
    """Saves before those that count."""
    repeats: int = 1
    steps: int = 1
    """Training steps before each save."""
    probe_directories: dict[str, str] = {}
    """For each tier, a directory of the harness on the same storage, in which single operations are timed; empty: they aren't."""


class CommandProgram(msgspec.Struct, frozen=True, kw_only=True, tag_field="program", tag="command"):
    """Become an unmodified command."""

    argv: tuple[str, ...]
    save_numbers: tuple[int, ...] = ()
    """The steps of the saves to come, where the command's checkpoint always has the same name."""
    learns: bool = False
    """Whether it is to be noted how the ranks are started that the command starts by itself."""
    launch: LearnedLaunch | None = None
    """How each rank is started by the harness, without `argv`; None: the command starts its ranks by itself."""
    port: int = 0
    """The MASTER_PORT of this launch, filled in by the node."""
    short_end: bool = False
    """Whether a warm interpreter ends without tearing its modules down."""


AnyProgram = TrainingProgram | AuditProgram | ReferenceProgram | MeasuringProgram | CommandProgram
