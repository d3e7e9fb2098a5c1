"""What one rank measured by its own clock: plain samples, from which `chaosckpt measure` makes its figures."""

from __future__ import annotations

from typing import Literal

import msgspec

MeasureKind = Literal["saves", "plain", "neighbour", "restart"]
"""saves: alone, beside training and in a pile; plain: alone only; neighbour: alone, without an end; restart: one recovery."""


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """What a rank and the processes that it started had asked of storage so far: the counters of /proc/PID/io."""

    read_bytes: int = 0
    read_chars: int = 0
    read_operations: int = 0
    write_bytes: int = 0
    write_chars: int = 0
    write_operations: int = 0

    def __sub__(self, earlier: Counters) -> Counters:
        fields = self.__struct_fields__
        return Counters(**{name: getattr(self, name) - getattr(earlier, name) for name in fields})


class TierSize(msgspec.Struct, frozen=True, kw_only=True):
    """What lay on one storage tier: files, their sizes as `ls -l` tells them, and their blocks as `du` tells them."""

    tier: str
    files: int
    apparent_bytes: int
    allocated_bytes: int


class LevelAt(msgspec.Struct, frozen=True):
    """So long after the start of a save it was acknowledged at this level."""

    level: str
    seconds: float


class StageTook(msgspec.Struct, frozen=True):
    """A stage of a save, as the target marks it, and how long it took until the next mark or the end."""

    stage: str
    seconds: float


class MeteredSave(msgspec.Struct, frozen=True, kw_only=True):
    """One save with no training beside it. `began_seconds` is the clock's own time, which all processes of a machine share."""

    step: int
    began_seconds: float
    stall_seconds: float
    completion_seconds: float
    levels: tuple[LevelAt, ...]
    stages: tuple[StageTook, ...] = ()
    """In the order in which they began; empty where the target marks none."""
    asynchronous: bool
    """Whether it was still under way when `save` returned."""
    io: Counters
    resident_before_bytes: int
    resident_after_bytes: int
    peak_resident_bytes: int
    tiers: tuple[TierSize, ...] = ()
    """What lay there after it; empty on a rank that doesn't look, because another one sees the same tier."""
    retained: int | None = None
    """Complete checkpoints after it, as the target lists them; None where it offers no list."""


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """One save while training went on. `completion_seconds` is seen after a step: exact to one step only."""

    began_seconds: float
    stall_seconds: float
    completion_seconds: float
    step_seconds: tuple[float, ...]
    """The steps that began while some rank's save was under way."""
    tells: bool
    """Whether the save tells that it is finished without being awaited."""


class OutstandingSaves(msgspec.Struct, frozen=True):
    """From `seconds` after the first save on, so many saves of this rank were under way."""

    seconds: float
    saves: int


class MeteredBacklog(msgspec.Struct, frozen=True, kw_only=True):
    """Saves begun at a shorter interval than they take: `steps` training steps between two of them.

    `interval_seconds` are the times trained between two saves. `waited_seconds` is, save by save, how long an earlier one was awaited
    before it might begin; `before` how many were still under way when it began. `drained_seconds`: the wait for the rest at the end.
    """

    steps: int
    interval_seconds: tuple[float, ...]
    stall_seconds: tuple[float, ...]
    waited_seconds: tuple[float, ...]
    before: tuple[int, ...]
    drained_seconds: float
    timeline: tuple[OutstandingSaves, ...]


class MeteredRecovery(msgspec.Struct, frozen=True, kw_only=True):
    """One restart. `marked`: the target marks where loading begins; else all of its recovery is counted as loading."""

    process_start_seconds: float
    discover_seconds: float
    load_seconds: float
    first_step_seconds: float
    marked: bool
    chosen: int | None
    io: Counters

    @property
    def total_seconds(self) -> float:
        return self.process_start_seconds + self.discover_seconds + self.load_seconds + self.first_step_seconds


class MeteredLatency(msgspec.Struct, frozen=True, kw_only=True):
    """Single operations of one rank on one tier, beside all saves; seconds."""

    tier: str
    write_seconds: tuple[float, ...]
    fsync_seconds: tuple[float, ...]
    rename_seconds: tuple[float, ...]
    stat_seconds: tuple[float, ...]


class Seccomp(msgspec.Struct, frozen=True):
    """The mode and the number of filters in /proc/self/status. Filters are inherited, so a container's own count, too."""

    mode: int
    filters: int


class Metered(msgspec.Struct, frozen=True, kw_only=True):
    """All that one rank measured in one attempt."""

    rank: int
    logical_bytes: int = 0
    """Tensors of the state that all ranks share, counted once."""
    own_logical_bytes: int = 0
    """Tensors that only this rank saves: its random streams and its stamp."""
    warm_up: tuple[MeteredSave, ...] = ()
    saves: tuple[MeteredSave, ...] = ()
    step_seconds: tuple[float, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    backlog: MeteredBacklog | None = None
    recovery: MeteredRecovery | None = None
    latencies: tuple[MeteredLatency, ...] = ()
    final: tuple[TierSize, ...] = ()
    """What lay there once the target was closed."""
    retained: int | None = None
    seccomp: Seccomp = Seccomp(0, 0)
    imports: tuple[str, ...] = ()
    """Top-level modules from which the target's own module takes what it works with."""
    notes: tuple[str, ...] = ()
