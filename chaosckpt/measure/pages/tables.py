"""The details of a measurement as tables: the interval, saves by rank, saves beside training, restarts, storage, contention, scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from chaosckpt.measure.measurement import (
    Contention,
    FailureRate,
    IntervalAdvice,
    Limit,
    Measurement,
    RankFigures,
    Restart,
    ScalePoint,
    Spread,
    StorageLatency,
)
from chaosckpt.measure.pages.sections import Section, spread_text
from chaosckpt.model.phrasing import plural
from chaosckpt.report.quantities import bytes_text, digits, ratio_text, seconds_text, share_text

YOUNG = "Young 1974, doi:10.1145/361147.361115"
DALY = "Daly 2006, doi:10.1016/j.future.2004.11.016"
_Entry = TypeVar("_Entry")
_Column = Callable[[RankFigures], str]


def detail_sections(measurement: Measurement) -> Iterator[Section]:
    """Every table for which something was measured: the interval first, then in the order of a save's life."""
    yield from _interval(measurement.advice)
    yield _saves(measurement)
    yield from _stages(measurement)
    yield _training(measurement)
    yield from _backlog(measurement)
    for restart in measurement.restarts:
        yield _restart(restart)
    yield _capacity(measurement)
    yield from _storage(measurement)
    yield from _latencies(measurement)
    yield from _contention(measurement)
    yield from _scale(measurement)


def _seconds(spread: Spread | None) -> str:
    return spread_text(spread, seconds_text)


def _bytes(spread: Spread | None) -> str:
    return spread_text(spread, bytes_text)


def _table(
    title: str, entries: Iterable[_Entry], columns: Mapping[str, Callable[[_Entry], str]], *remarks: str
) -> Section:
    """One row for each entry; each column by its header."""
    rows = tuple(tuple(shown(entry) for shown in columns.values()) for entry in entries)
    return Section(title=title, headers=tuple(columns), rows=rows, remarks=remarks)


def _by_rank(title: str, measurement: Measurement, columns: Mapping[str, _Column], *remarks: str) -> Section:
    """One row for each rank."""
    ranks: dict[str, _Column] = {"rank": lambda figures: str(figures.rank)}
    return _table(title, measurement.figures, {**ranks, **columns}, *remarks)


def _saves(measurement: Measurement) -> Section:
    slowest = max(measurement.figures, key=lambda figures: figures.completion_seconds.median)
    columns: dict[str, _Column] = {
        "stall": lambda figures: _seconds(figures.stall_seconds),
        "completion": lambda figures: _seconds(figures.completion_seconds),
        "peak resident memory": lambda figures: bytes_text(figures.peak_rss_bytes),
    }
    remarks = [f"slowest in completion: rank {slowest.rank}"] if len(measurement.figures) > 1 else []
    return _by_rank("Saves, with no training beside them", measurement, columns, *remarks)


def _stages(measurement: Measurement) -> Iterator[Section]:
    """What the stall and the completion consist of, where the target marks its stages."""
    stages = dict.fromkeys(stage for figures in measurement.figures for stage in figures.stage_seconds)
    if stages:
        yield _by_rank(
            "Stages of a save, as the target marks them", measurement, {stage: _stage(stage) for stage in stages}
        )


def _stage(name: str) -> _Column:
    return lambda figures: _seconds(figures.stage_seconds.get(name))


def _training(measurement: Measurement) -> Section:
    beside = any(
        figures.completion_while_training_seconds or figures.step_seconds_during_save for figures in measurement.figures
    )
    if not beside:
        return _by_rank("Training", measurement, {"step": lambda figures: _seconds(figures.step_seconds)})
    columns: dict[str, _Column] = {
        "completion": lambda figures: _seconds(figures.completion_while_training_seconds),
        "step without a save": lambda figures: _seconds(figures.step_seconds),
        "step during a save": lambda figures: _seconds(figures.step_seconds_during_save),
        "slower": lambda figures: _ratio(figures.step_seconds_during_save, figures.step_seconds),
        "waited for an earlier save": lambda figures: _seconds(figures.waited_seconds),
    }
    return _by_rank("Saves while training goes on", measurement, columns, *_steps_alike(measurement))


def _steps_alike(measurement: Measurement) -> Iterator[str]:
    """A slowdown that no sample stands out for may be chance, and the interval is made from it."""
    beside = [(figure.step_seconds, figure.step_seconds_during_save) for figure in measurement.figures]
    if not any(during is not None and during.low > alone.high for alone, during in beside):
        yield "The times of steps with and without a save overlap: the difference may be chance."


def _ratio(beside: Spread | None, alone: Spread) -> str:
    return "-" if beside is None or alone.median <= 0 else ratio_text(beside.median / alone.median)


def _backlog(measurement: Measurement) -> Iterator[Section]:
    backlog = measurement.backlog
    if backlog is None:
        return
    grows = (
        "yes: the number of unfinished saves grew"
        if backlog.grows
        else "no: a save waits or is refused before the number grows"
    )
    yield Section(
        title="Backlog: an interval shorter than a save",
        rows=(
            ("interval", seconds_text(backlog.interval_seconds)),
            ("completion", _seconds(backlog.completion_seconds)),
            ("waited", f"{_seconds(backlog.waited_seconds)} for an earlier save before the next one could start"),
            ("outstanding", f"at most {backlog.peak_outstanding} at once"),
            ("grows", grows),
        ),
        remarks=(backlog.note,) if backlog.note else (),
    )


def _restart(restart: Restart) -> Section:
    phases = ("process_start_seconds", "discover_seconds", "load_seconds", "first_step_seconds", "total_seconds")
    rows = [("slowest", *(_seconds(getattr(restart, phase)) for phase in phases))]
    rows += [(str(rank.rank), *(_seconds(getattr(rank, phase)) for phase in phases)) for rank in restart.ranks]
    return Section(
        title=f"Restart in fresh processes, {restart.cache} page cache",
        headers=("rank", "process start", "discover", "load", "first step", "total"),
        rows=tuple(rows),
        remarks=(restart.note,) if restart.note else (),
    )


def _capacity(measurement: Measurement) -> Section:
    capacity = measurement.capacity
    retained = str(capacity.retained_generations)
    rows = [
        ("logical", f"{bytes_text(capacity.logical_bytes)} of tensors"),
        ("written", f"{bytes_text(capacity.written_bytes)} in one save, by all ranks{_amplification(measurement)}"),
        ("apparent", f"{bytes_text(capacity.apparent_bytes)}, the sizes of one checkpoint's files"),
        ("allocated", f"{bytes_text(capacity.allocated_bytes)}, their blocks on disk"),
        ("retained", retained if capacity.retires else f"{retained}, none was removed"),
        (
            "peak temporary",
            f"{bytes_text(capacity.peak_temporary_bytes)} during a save, beside the retained checkpoints",
        ),
        (
            "peak memory",
            f"{bytes_text(capacity.peak_rss_bytes)} resident; {bytes_text(capacity.staging_bytes)} more than training takes",
        ),
        ("peak /dev/shm", bytes_text(capacity.peak_shm_bytes)),
        ("leaked", f"{bytes_text(capacity.leaked_bytes)} more after the last save than after the warm-up"),
    ]
    if capacity.free_bytes is not None:
        rows.append(("free", f"{bytes_text(capacity.free_bytes)} before the first save"))
    return Section(title="Capacity", rows=tuple(rows))


def _amplification(measurement: Measurement) -> str:
    logical = measurement.capacity.logical_bytes
    return f", {ratio_text(measurement.capacity.written_bytes / logical)} of the logical size" if logical else ""


def _storage(measurement: Measurement) -> Iterator[Section]:
    written: dict[str, _Column] = {
        "written to storage": lambda figures: _bytes(figures.written_bytes),
        "asked to write": lambda figures: _bytes(figures.written_chars),
        "write calls": lambda figures: spread_text(figures.write_operations, digits),
        "throughput": lambda figures: spread_text(figures.bytes_per_second, _speed),
        "time per call": lambda figures: _seconds(figures.seconds_per_operation),
    }
    yield _by_rank(
        "Storage by rank: one save",
        measurement,
        written,
        "Throughput is the bytes passed to write calls divided by the completion; a page cache may be faster than the storage.",
    )
    if any(figures.read_bytes is not None for figures in measurement.figures):
        read: dict[str, _Column] = {
            "read from storage": lambda figures: _bytes(figures.read_bytes),
            "asked to read": lambda figures: _bytes(figures.read_chars),
            "read calls": lambda figures: spread_text(figures.read_operations, digits),
        }
        yield _by_rank("Storage by rank: one restart", measurement, read)


def _speed(bytes_per_second: float) -> str:
    return f"{bytes_text(bytes_per_second)}/s"


def _latencies(measurement: Measurement) -> Iterator[Section]:
    columns: dict[str, Callable[[StorageLatency], str]] = {
        "rank": lambda entry: str(entry.rank),
        "tier": lambda entry: entry.tier,
        "write": lambda entry: _seconds(entry.write_seconds),
        "fsync": lambda entry: _seconds(entry.fsync_seconds),
        "rename": lambda entry: _seconds(entry.rename_seconds),
        "stat": lambda entry: _seconds(entry.stat_seconds),
    }
    if measurement.latencies:
        yield _table("Single operations on storage, outside of saves", measurement.latencies, columns)


def _contention(measurement: Measurement) -> Iterator[Section]:
    columns: dict[str, Callable[[Contention], str]] = {
        "neighbours": lambda entry: str(entry.neighbours),
        "completion": lambda entry: _seconds(entry.completion_seconds),
        "alone, just before": lambda entry: _seconds(entry.alone_seconds),
        "slower than alone": lambda entry: ratio_text(entry.ratio),
        "neighbours slower than alone": lambda entry: (
            "-" if entry.neighbour_ratio is None else ratio_text(entry.neighbour_ratio)
        ),
    }
    if measurement.contention:
        yield _table(
            "Beside neighbours that write the same way on the same storage",
            measurement.contention,
            columns,
            *(
                f"Beside {plural(entry.neighbours, 'neighbour')} the times overlap with those alone: the ratio may be chance."
                for entry in measurement.contention
                if entry.alone_seconds is not None and entry.alone_seconds.high >= entry.completion_seconds.low
            ),
        )


def _scale(measurement: Measurement) -> Iterator[Section]:
    columns: dict[str, Callable[[ScalePoint], str]] = {
        "ranks": lambda point: str(point.ranks),
        "checkpoint size": lambda point: bytes_text(point.checkpoint_bytes),
        "stall": lambda point: _seconds(point.stall_seconds),
        "completion": lambda point: _seconds(point.completion_seconds),
        "restart": lambda point: _seconds(point.restart_seconds),
        "slowest rank": lambda point: str(point.slowest_rank),
    }
    if measurement.scale:
        yield _table("Scale: figures of the slowest rank", measurement.scale, columns)


def _interval(advice: IntervalAdvice) -> tuple[Section, ...]:
    """What the interval costs and where it comes from, its limits, and the weight of its inputs."""
    limits = Section(
        title="Limits of the interval",
        headers=("limit", "interval", "", "why"),
        rows=tuple(_limit(limit) for limit in advice.limits),
    )
    return (_advised(advice), _inputs(advice), *((limits,) if advice.limits else ()))


def _rate(rate: FailureRate) -> str:
    """`one failure in 24 h, as given`."""
    mean = seconds_text(rate.mtbf_seconds)
    if rate.source == "assumed":
        return f"one failure in {mean} is assumed"
    if rate.failures is None or rate.observed_seconds is None:
        return f"one failure in {mean}, as given"
    low = "0 s" if rate.low_seconds is None else seconds_text(rate.low_seconds)
    bound = f"between {low} and {seconds_text(rate.high_seconds)}" if rate.high_seconds is not None else f"above {low}"
    confidence = "90 %" if rate.high_seconds is not None else "95 %"
    counted = f"{plural(rate.failures, 'failure')} in {seconds_text(rate.observed_seconds)}"
    return f"{counted}: one in {mean}, and with {confidence} confidence one {bound}"


def _advised(advice: IntervalAdvice) -> Section:
    low, high = advice.near_seconds
    steps = f", {plural(advice.steps, 'training step')}" if advice.steps is not None else ""
    rows = [
        ("advised", f"{seconds_text(advice.seconds)} of training between two saves{steps}"),
        ("overhead", f"{share_text(advice.overhead)} of the training time is expected to be lost: {_parts(advice)}"),
        ("about as good", f"from {seconds_text(low)} to {seconds_text(high)}: at most 5 % more overhead"),
        (
            "at worst",
            f"the newest complete checkpoint is {seconds_text(advice.worst_loss_seconds)} old when a failure happens",
        ),
        ("optimum", f"{seconds_text(advice.optimum_seconds)} without any limit"),
        ("Young", f"{seconds_text(advice.young_seconds)}, {_valid(advice.young_holds)} ({YOUNG})"),
        ("Daly", f"{seconds_text(advice.daly_seconds)}, {_valid(advice.daly_holds)} ({DALY})"),
    ]
    if advice.low_seconds is not None:
        high_text = "no bound" if advice.high_seconds is None else seconds_text(advice.high_seconds)
        rows.insert(
            3,
            (
                "failure rate",
                f"between its bounds the advised interval goes from {seconds_text(advice.low_seconds)} to {high_text}",
            ),
        )
    return Section(title="Interval", rows=tuple(rows), remarks=advice.notes)


def _parts(advice: IntervalAdvice) -> str:
    return (
        f"{share_text(advice.saving_share)} by saving, {share_text(advice.lost_work_share)} by repeated work, "
        f"{share_text(advice.restart_share)} by restarts"
    )


def _valid(holds: bool) -> str:
    return "which applies: a save is much shorter" if holds else "which does not apply: a save is too long"


def _inputs(advice: IntervalAdvice) -> Section:
    weight = {entry.name: entry.value for entry in advice.elasticities}
    values = {
        "mean time between failures": _rate(advice.failure_rate),
        "stall": seconds_text(advice.stall_seconds),
        "slower steps during a save": f"{seconds_text(advice.slowdown_seconds)} of training lost in each save",
        "completion after the stall": seconds_text(max(0.0, advice.completion_seconds - advice.stall_seconds)),
        "restart": seconds_text(advice.restart_seconds),
    }
    if advice.tolerated_loss_seconds is not None:
        values["tolerated loss"] = seconds_text(advice.tolerated_loss_seconds)
    return Section(
        title="What the interval depends on",
        headers=("input", "value", "overhead changes, if 1 % more"),
        rows=tuple((name, value, _weight(weight.get(name))) for name, value in values.items()),
        remarks=(f"dominant: {advice.dominant}",),
    )


def _weight(value: float | None) -> str:
    if value is None:
        return "-"
    rounded = round(value, 2)
    return "nothing" if rounded == 0 else f"{'+' if rounded > 0 else '-'}{digits(abs(rounded))} %"


def _limit(limit: Limit) -> tuple[str, str, str, str]:
    where = "-" if limit.seconds is None else f"{limit.bound} {seconds_text(limit.seconds)}"
    return limit.name, where, "holds" if limit.holds else "DOES NOT HOLD", limit.sentence
