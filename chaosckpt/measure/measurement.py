"""Measurements: what checkpointing costs, as samples by rank, and the interval advised from them; `measure --json` prints them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Literal

import msgspec

FORMAT = 1
"""Of the JSON; raised when a key changes its meaning."""


class Spread(msgspec.Struct, frozen=True):
    """Repeated samples of one figure, in the order in which they were taken; never empty. The unit is in the name of who holds it."""

    samples: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError("a spread needs at least one sample")

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def low(self) -> float:
        return min(self.samples)

    @property
    def high(self) -> float:
        return max(self.samples)


def slowest(spreads: Iterable[Spread]) -> Spread:
    """The job's own figure: repeat by repeat the largest among the ranks.

    Where ranks have unequal numbers of samples it is the rank with the highest median. Raises ValueError without any spread.
    """
    every = tuple(spreads)
    if not every:
        raise ValueError("no rank has this figure")
    if len({len(spread.samples) for spread in every}) == 1:
        return Spread(tuple(max(together) for together in zip(*(spread.samples for spread in every), strict=True)))
    return max(every, key=lambda spread: spread.median)


class RankFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What saves, and the restart, cost one rank. None: not measured, or there is no such phase."""

    rank: int
    stall_seconds: Spread
    """From the call of `save` until it returned: training stood still."""
    completion_seconds: Spread
    """From the call of `save` until its result was observed, with no training beside it."""
    stage_seconds: dict[str, Spread] = {}
    """How long the stages of a save took that the target marks: `snapshot`, `persist`, `commit`, `retire`."""
    completion_while_training_seconds: Spread | None = None
    """The same while training went on; seen after a step, so that it is exact to one step only."""
    step_seconds: Spread
    """One training step with no save under way."""
    step_seconds_during_save: Spread | None = None
    waited_seconds: Spread | None = None
    """Training stood still for an earlier save before the next might begin."""
    written_bytes: Spread
    """Handed to storage during one save: write_bytes of /proc/self/io."""
    written_chars: Spread
    """Asked of write calls during one save: wchar."""
    write_operations: Spread
    """Write calls during one save: syscw."""
    read_bytes: Spread | None = None
    read_chars: Spread | None = None
    read_operations: Spread | None = None
    peak_rss_bytes: int
    """The largest resident memory during saves."""
    bytes_per_second: Spread
    """Written characters over the completion of each save."""
    seconds_per_operation: Spread
    """Completion over write calls of each save."""


class RestartPhases(msgspec.Struct, frozen=True, kw_only=True):
    """How long each phase of a restart in a fresh allocation took."""

    process_start_seconds: Spread
    """From the node's call until the target is asked to recover: exec, interpreter, imports, process group, the job at step 0."""
    discover_seconds: Spread
    load_seconds: Spread
    first_step_seconds: Spread
    total_seconds: Spread


class RankRestart(RestartPhases, frozen=True, kw_only=True):
    """One rank's share of a restart."""

    rank: int


class Restart(RestartPhases, frozen=True, kw_only=True):
    """Restarts in a fresh allocation; the spreads are those of the slowest rank. `note` says what the cache's name hides."""

    cache: Literal["warm", "cold"]
    ranks: tuple[RankRestart, ...] = ()
    note: str = ""


class SaveSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One asynchronous save of one rank beside training, by the seconds since the job's first: begun, returned, seen complete."""

    rank: int
    started_seconds: float
    returned_seconds: float
    observed_seconds: float


class OutstandingAt(msgspec.Struct, frozen=True, kw_only=True):
    """From `seconds` after the first save on, so many saves were under way."""

    seconds: float
    saves: int


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose interval was shorter than its saves. `grows`: more and more saves were under way until the run ended."""

    interval_seconds: float
    completion_seconds: Spread
    """Of saves beside training."""
    peak_outstanding: int
    waited_seconds: Spread
    timeline: tuple[OutstandingAt, ...]
    grows: bool
    note: str = ""


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """The space that one checkpoint of the whole job takes, and what lies there beside it; bytes."""

    logical_bytes: int
    """Of the tensors that were saved."""
    written_bytes: int
    """Written during one save, by every rank together; the median."""
    apparent_bytes: int
    """The sizes of one checkpoint's files, as `ls -l` tells them."""
    allocated_bytes: int
    """Blocks of one checkpoint's files (st_blocks), as `du` tells them."""
    retained_generations: int
    """Checkpoints that lay there after the last save."""
    retires: bool = True
    """False: every checkpoint that was saved still lay there, so that the number has no bound that was seen."""
    peak_temporary_bytes: int = 0
    """The most that lay on storage during a save beside what was retained before it and after it."""
    peak_rss_bytes: int = 0
    """The largest resident memory of any rank during saves."""
    staging_bytes: int = 0
    """By how much resident memory rose over what training alone took, on the rank where it rose most, its saver processes included."""
    peak_shm_bytes: int = 0
    """The largest rise of /dev/shm during saves."""
    leaked_bytes: int = 0
    """By how much the memory of a rank had grown after the last save, compared with the state after the warm-up."""
    free_bytes: int | None = None
    """Free on the file system for this user before the first save."""


class Contention(msgspec.Struct, frozen=True, kw_only=True):
    """The same saves beside `neighbours` jobs that write the same way. Ratios are of medians: with, over alone."""

    neighbours: int
    completion_seconds: Spread
    alone_seconds: Spread | None = None
    """The same saves without any neighbour, taken just before."""
    ratio: float
    neighbour_ratio: float | None = None
    """How much slower the neighbours' own saves were than the measured job's alone."""


class ScalePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of the slowest rank at one point of a sweep over ranks and checkpoint size."""

    ranks: int
    checkpoint_bytes: int
    stall_seconds: Spread
    completion_seconds: Spread
    restart_seconds: Spread | None = None
    slowest_rank: int = 0
    """The rank with the highest median completion."""


class StorageLatency(msgspec.Struct, frozen=True, kw_only=True):
    """A direct probe of the storage of one tier by one rank, outside of the saves."""

    rank: int
    tier: str
    write_seconds: Spread
    fsync_seconds: Spread
    rename_seconds: Spread
    stat_seconds: Spread


class FailureRate(msgspec.Struct, frozen=True, kw_only=True):
    """How often the whole job fails.

    Where failures were counted, `low_seconds` and `high_seconds` bound the mean with 90 % confidence.
    """

    mtbf_seconds: float
    low_seconds: float | None = None
    high_seconds: float | None = None
    failures: int | None = None
    observed_seconds: float | None = None
    source: Literal["given", "counted", "assumed"] = "given"


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds the interval from below or above. `seconds` is None where the limit doesn't depend on the interval."""

    name: Literal["backlog", "tolerated loss", "storage", "step"]
    bound: Literal["at least", "at most", "none"] = "none"
    seconds: float | None
    holds: bool
    sentence: str


class Elasticity(msgspec.Struct, frozen=True, kw_only=True):
    """By how many percent the expected overhead changes when this input grows by one percent, the interval chosen anew."""

    name: str
    value: float


class IntervalAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """How long to train between two saves. An interval runs from the end of one save's stall to the start of the next save."""

    seconds: float
    overhead: float
    """Expected at that interval: time spent for something else than training, over the time of training."""
    steps: int | None = None
    """The interval in training steps, at least 1."""
    optimum_seconds: float
    """The interval of the least expected overhead if nothing limited it."""
    young_seconds: float
    young_holds: bool
    daly_seconds: float
    daly_holds: bool
    failure_rate: FailureRate
    mtbf_seconds: float
    stall_seconds: float
    slowdown_seconds: float = 0.0
    """Training time lost to slower steps while one save is written."""
    completion_seconds: float
    restart_seconds: float
    tolerated_loss_seconds: float | None = None
    worst_loss_seconds: float
    """The age of the newest durable save when a failure strikes at the worst moment."""
    saving_share: float = 0.0
    lost_work_share: float = 0.0
    restart_share: float = 0.0
    """The three parts of `overhead`."""
    near_seconds: tuple[float, float]
    """The intervals between them cost at most a twentieth more overhead, and keep the limits."""
    low_seconds: float | None = None
    high_seconds: float | None = None
    """The advice at both ends of the failure rate's confidence."""
    limits: tuple[Limit, ...] = ()
    curve: tuple[tuple[float, float], ...] = ()
    """(interval in seconds, expected overhead), by ascending interval; the optimum and the advised interval are among them."""
    elasticities: tuple[Elasticity, ...] = ()
    dominant: str
    """The input, the failure rate aside, that weighs most."""
    notes: tuple[str, ...] = ()


class FileSystem(msgspec.Struct, frozen=True, kw_only=True):
    """What a tier lies on, and what that kind's documentation guarantees of rename, fsync and reading after a close."""

    tier: str
    kind: str
    mount_options: str
    device: str
    mount_point: str = ""
    root: str = "/"
    """The directory of the file system that is mounted there; another one than `/` for a bind mount or a subvolume."""
    documented: str
    source: str = ""
    """Where the documentation says so; empty for an unknown kind."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where a measurement or a certificate comes from. `date` is when it began: ISO 8601, UTC, to the second."""

    date: str
    host: str
    command: str


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one `chaosckpt measure` found. Figures of the job are those of its slowest rank."""

    scenario: str
    target: str
    strategy: str
    ranks: int
    seed: int = 0
    repeats: int
    warm_up: int = 0
    asynchronous: bool = False
    """Saves go on after `save` has returned."""
    figures: tuple[RankFigures, ...]
    restarts: tuple[Restart, ...]
    spans: tuple[SaveSpan, ...] = ()
    """Of asynchronous saves: when each was started, and when its completion was observed."""
    backlog: Backlog | None = None
    capacity: Capacity
    contention: tuple[Contention, ...] = ()
    scale: tuple[ScalePoint, ...] = ()
    latencies: tuple[StorageLatency, ...] = ()
    advice: IntervalAdvice
    failure_boundary: str
    file_systems: tuple[FileSystem, ...] = ()
    versions: dict[str, str] = {}
    filters: dict[str, int] = {}
    """By rank, the Seccomp mode that it saw in its own /proc/self/status; 0 is no filter."""
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = None
    """None where no command line asked for it."""
    format: int = FORMAT

    @property
    def stall_seconds(self) -> Spread:
        """Of the job: save by save, the slowest rank's."""
        return slowest(figure.stall_seconds for figure in self.figures)

    @property
    def completion_seconds(self) -> Spread:
        """Of the job: save by save, the slowest rank's."""
        return slowest(figure.completion_seconds for figure in self.figures)

    @property
    def restart(self) -> Restart | None:
        """The restart that a fresh allocation would see: with a cold cache, where that could be measured."""
        by_cache = {restart.cache: restart for restart in self.restarts}
        return by_cache.get("cold") or by_cache.get("warm")

    @property
    def worst_contention(self) -> Contention | None:
        """Beside the largest number of neighbours that was tried."""
        return max(self.contention, key=lambda entry: entry.neighbours, default=None)


class MeasurementDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON of a measurement: eight figures (medians, of the slowest rank), then everything. None: not measured."""

    interval_seconds: float
    checkpoint_bytes: int
    ranks: int
    stall_seconds: float
    completion_seconds: float
    contention_ratio: float | None
    retained_generations: int
    restart_seconds: float | None
    details: Measurement


def document(measurement: Measurement) -> MeasurementDocument:
    """The measurement with its eight figures in front."""
    contention, restart = measurement.worst_contention, measurement.restart
    return MeasurementDocument(
        interval_seconds=measurement.advice.seconds,
        checkpoint_bytes=measurement.capacity.apparent_bytes,
        ranks=measurement.ranks,
        stall_seconds=measurement.stall_seconds.median,
        completion_seconds=measurement.completion_seconds.median,
        contention_ratio=contention.ratio if contention else None,
        retained_generations=measurement.capacity.retained_generations,
        restart_seconds=restart.total_seconds.median if restart else None,
        details=measurement,
    )
