"""Two measurements set beside each other: figure by figure the ratio, and what else differs between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from chaosckpt.errors import UsageError
from chaosckpt.measure.measurement import FORMAT, Measurement, MeasurementDocument, RankFigures, Spread, slowest
from chaosckpt.model import formats

Unit = Literal["seconds", "bytes", "count", "ratio", "bytes/second"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of both measurements; medians. None: not measured, or no ratio because the first is 0.

    `apart`: no sample of one lies within the samples of the other; None where there are no samples to tell by.
    """

    name: str
    unit: Unit
    before: float | None
    after: float | None
    ratio: float | None
    apart: bool | None = None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What else isn't alike, so that a ratio may be due to it."""

    what: str
    before: str
    after: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """`measure --compare A B --json` prints exactly this object: ratios of B over A, the eight figures first."""

    before: str
    after: str
    """Where the two were read from."""
    rows: tuple[Row, ...]
    differences: tuple[Difference, ...] = ()


class _Details(msgspec.Struct):
    format: int


class _Outline(msgspec.Struct):
    """As much of a document as every later format still has."""

    details: _Details


def read(path: str | Path) -> MeasurementDocument:
    """A document that `measure --json` wrote. Raises UsageError, in a sentence that names the file, for everything else."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} can't be read: {error.strerror}; name a file that `chaosckpt measure --json` wrote"
        ) from None
    try:
        found = formats.read_json(content, _Outline).details.format
        if found != FORMAT:
            raise UsageError(formats.refusal(f"the measurement {path}", found, FORMAT, "measure again"))
        return formats.read_json(content, MeasurementDocument)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"{path} is not a measurement: {error}; name a file that `chaosckpt measure --json` wrote"
        ) from None


def compare(before: str | Path, after: str | Path) -> Comparison:
    """Reads both files and compares them. Raises UsageError where one of them is no measurement."""
    return compared(read(before), read(after), str(before), str(after))


def compared(before: MeasurementDocument, after: MeasurementDocument, before_name: str, after_name: str) -> Comparison:
    """The ratios of the second measurement over the first."""
    return Comparison(
        before=before_name,
        after=after_name,
        rows=tuple(_row(name, unit, figure, before.details, after.details) for name, unit, figure in _FIGURES),
        differences=tuple(_differences(before.details, after.details)),
    )


Figure = Callable[[Measurement], float | Spread | None]


def _of_ranks(name: str) -> Figure:
    """A figure of the slowest rank; None where no rank has it."""

    def figure(measurement: Measurement) -> Spread | None:
        found = [getattr(rank, name) for rank in measurement.figures]
        spreads = [spread for spread in found if isinstance(spread, Spread)]
        return slowest(spreads) if spreads else None

    assert name in RankFigures.__struct_fields__
    return figure


def _of_restart(name: str) -> Figure:
    def figure(measurement: Measurement) -> Spread | None:
        return getattr(measurement.restart, name) if measurement.restart else None

    return figure


def _of_capacity(name: str) -> Figure:
    return lambda measurement: float(getattr(measurement.capacity, name))


def _contention(measurement: Measurement) -> float | None:
    return measurement.worst_contention.ratio if measurement.worst_contention else None


def _bytes_per_second(measurement: Measurement) -> float:
    """Of all ranks together, as each saw it."""
    return sum(rank.bytes_per_second.median for rank in measurement.figures)


_FIGURES: tuple[tuple[str, Unit, Figure], ...] = (
    ("interval", "seconds", lambda measurement: measurement.advice.seconds),
    ("checkpoint size", "bytes", _of_capacity("apparent_bytes")),
    ("ranks", "count", lambda measurement: float(measurement.ranks)),
    ("stall", "seconds", lambda measurement: measurement.stall_seconds),
    ("completion", "seconds", lambda measurement: measurement.completion_seconds),
    ("contention", "ratio", _contention),
    ("retained generations", "count", _of_capacity("retained_generations")),
    ("restart", "seconds", _of_restart("total_seconds")),
    ("expected overhead", "ratio", lambda measurement: measurement.advice.overhead),
    ("worst loss", "seconds", lambda measurement: measurement.advice.worst_loss_seconds),
    ("completion while training", "seconds", _of_ranks("completion_while_training_seconds")),
    ("waited for an earlier save", "seconds", _of_ranks("waited_seconds")),
    ("step", "seconds", _of_ranks("step_seconds")),
    ("step during a save", "seconds", _of_ranks("step_seconds_during_save")),
    ("process start", "seconds", _of_restart("process_start_seconds")),
    ("discover", "seconds", _of_restart("discover_seconds")),
    ("load", "seconds", _of_restart("load_seconds")),
    ("first step", "seconds", _of_restart("first_step_seconds")),
    ("throughput of all ranks", "bytes/second", _bytes_per_second),
    ("time per write call", "seconds", _of_ranks("seconds_per_operation")),
    ("logical size", "bytes", _of_capacity("logical_bytes")),
    ("written by a save", "bytes", _of_capacity("written_bytes")),
    ("allocated", "bytes", _of_capacity("allocated_bytes")),
    ("peak temporary", "bytes", _of_capacity("peak_temporary_bytes")),
    ("peak resident memory", "bytes", _of_capacity("peak_rss_bytes")),
    ("peak of /dev/shm", "bytes", _of_capacity("peak_shm_bytes")),
)
"""The eight figures first, in the order of the page."""


def _row(name: str, unit: Unit, figure: Figure, before: Measurement, after: Measurement) -> Row:
    old, new = figure(before), figure(after)
    apart = None
    if isinstance(old, Spread) and isinstance(new, Spread) and min(len(old.samples), len(new.samples)) > 1:
        apart = old.high < new.low or new.high < old.low
    first, second = _number(old), _number(new)
    ratio = second / first if first and second is not None else None
    return Row(name=name, unit=unit, before=first, after=second, ratio=ratio, apart=apart)


def _number(figure: float | Spread | None) -> float | None:
    return figure.median if isinstance(figure, Spread) else figure


def _differences(before: Measurement, after: Measurement) -> Iterator[Difference]:
    for what, old, new in (
        ("host", _host(before), _host(after)),
        ("scenario", before.scenario, after.scenario),
        ("target", before.target, after.target),
        ("strategy", before.strategy, after.strategy),
        ("repeats", str(before.repeats), str(after.repeats)),
        ("mean time between failures (s)", f"{before.advice.mtbf_seconds:g}", f"{after.advice.mtbf_seconds:g}"),
        ("tolerated loss (s)", _asked(before), _asked(after)),
        ("failure boundary", before.failure_boundary, after.failure_boundary),
    ):
        if old != new:
            yield Difference(what=what, before=old, after=new)
    yield from _of_names("version of ", before.versions, after.versions)
    yield from _of_names("file system of ", _systems(before), _systems(after))


def _of_names(what: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Difference]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name, "none"), after.get(name, "none")
        if old != new:
            yield Difference(what=f"{what}{name}", before=old, after=new)


def _systems(measurement: Measurement) -> dict[str, str]:
    return {system.tier: f"{system.kind} ({system.mount_options})" for system in measurement.file_systems}


def _host(measurement: Measurement) -> str:
    return measurement.provenance.host if measurement.provenance else "unknown"


def _asked(measurement: Measurement) -> str:
    asked = measurement.advice.tolerated_loss_seconds
    return "none" if asked is None else f"{asked:g}"
