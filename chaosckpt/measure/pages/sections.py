"""A report as sections of plain rows, alike on the terminal and the page, and its first page: eight figures and what they hold for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaosckpt.measure.measurement import FileSystem, Measurement, Spread
from chaosckpt.model.phrasing import plural
from chaosckpt.report.quantities import bytes_text, ratio_text, seconds_text, share_text


@dataclass(frozen=True)
class Section:
    """A table with a title. Without headers each row is a name and what is said of it. Remarks are sentences below the rows."""

    title: str
    rows: tuple[tuple[str, ...], ...] = ()
    headers: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Headline:
    """One of the figures that lead: its name, its value, and what belongs beside it."""

    name: str
    value: str
    remark: str = ""


def spread_text(spread: Spread | None, shown: Callable[[float], str]) -> str:
    """`2.1 s (2 s to 2.5 s)`: the median, with the lowest and the highest sample where they read differently."""
    if spread is None:
        return "-"
    median, low, high = shown(spread.median), shown(spread.low), shown(spread.high)
    return median if low == high else f"{median} ({low} to {high})"


def title(measurement: Measurement) -> str:
    """`What checkpointing costs: SCENARIO`."""
    return f"What checkpointing costs: {measurement.scenario}"


def subtitle(measurement: Measurement) -> str:
    """What was measured, and how often."""
    manner = "asynchronous saves" if measurement.asynchronous else "synchronous saves"
    return (
        f"{measurement.target}, {measurement.strategy}, {plural(measurement.ranks, 'rank')}, {manner}; median (lowest to highest) of "
        f"{plural(measurement.repeats, 'repeat')} after {plural(measurement.warm_up, 'warm-up save')}, of the slowest rank"
    )


def headlines(measurement: Measurement) -> tuple[Headline, ...]:
    """The eight figures, always all of them; one that was not measured says so."""
    advice, capacity = measurement.advice, measurement.capacity
    steps = f"every {plural(advice.steps, 'training step')}; " if advice.steps is not None else ""
    return (
        Headline(
            "interval",
            seconds_text(advice.seconds),
            f"{steps}expected overhead {share_text(advice.overhead)}{_hangs(measurement)}",
        ),
        Headline(
            "checkpoint size",
            bytes_text(capacity.apparent_bytes),
            f"{bytes_text(capacity.logical_bytes)} of tensors, {bytes_text(capacity.allocated_bytes)} allocated",
        ),
        Headline("rank count", str(measurement.ranks)),
        Headline("foreground stall", spread_text(measurement.stall_seconds, seconds_text), "training waits"),
        Headline(
            "full completion",
            spread_text(measurement.completion_seconds, seconds_text),
            "A failure before this moment falls back to the previous save.",
        ),
        _contention(measurement),
        Headline(
            "retained generations",
            str(capacity.retained_generations),
            "" if capacity.retires else "no checkpoint was removed, so they fill the storage",
        ),
        _restart(measurement),
    )


def _hangs(measurement: Measurement) -> str:
    broken = [limit.name for limit in measurement.advice.limits if not limit.holds]
    if broken:
        return f"; LIMIT NOT KEPT: {', '.join(broken)}"
    return f"; depends most on: {measurement.advice.dominant}"


def _contention(measurement: Measurement) -> Headline:
    worst = measurement.worst_contention
    if worst is None:
        return Headline("contention impact", "not measured", "add --neighbours")
    return Headline(
        "contention impact",
        ratio_text(worst.ratio),
        f"on completion, beside {plural(worst.neighbours, 'neighbour')} writing the same way; compared with saves alone just before",
    )


def _restart(measurement: Measurement) -> Headline:
    restart = measurement.restart
    if restart is None:
        return Headline("restart", "not measured")
    note = f"; {restart.note}" if restart.note and restart.cache == "warm" else ""
    return Headline(
        "restart",
        spread_text(restart.total_seconds, seconds_text),
        f"fresh allocation, {restart.cache} page cache{note}",
    )


def surroundings(measurement: Measurement) -> Section:
    """What the figures hold for: the failure boundary, when and where, the file systems, versions, and that no gate was in the way."""
    rows: list[tuple[str, ...]] = [("failure boundary", measurement.failure_boundary)]
    if (came := measurement.provenance) is not None:
        rows += [("measured", f"{came.date} on {came.host}"), ("command", came.command)]
    rows += _storage(measurement.file_systems)
    if measurement.versions:
        rows.append(("versions", ", ".join(f"{name} {version}" for name, version in measurement.versions.items())))
    rows.append(("gate", _gate(measurement)))
    return Section(title="What the figures hold for", rows=tuple(rows), remarks=measurement.notes)


def _storage(systems: tuple[FileSystem, ...]) -> list[tuple[str, ...]]:
    """Each tier's place; what is documented is told once for all tiers that it holds for."""
    rows: list[tuple[str, ...]] = []
    for documented, source in dict.fromkeys((system.documented, system.source) for system in systems):
        alike = [system for system in systems if system.documented == documented]
        rows += [(f"storage: {system.tier}", _where(system)) for system in alike]
        rows.append(("  documented", documented + (f" [{source}]" if source else "")))
    return rows


def _where(system: FileSystem) -> str:
    part = "" if system.root == "/" else f" (directory {system.root})"
    device = f" from {system.device}{part}" if system.device else ""
    mounted = f" at {system.mount_point}" if system.mount_point else ""
    options = f" with {system.mount_options}" if system.mount_options else ""
    return f"{system.kind}{device}{mounted}{options}"


def _gate(measurement: Measurement) -> str:
    if not measurement.filters:
        return "not used; no rank reported whether another system call filter is installed"
    filtered = [rank for rank, mode in measurement.filters.items() if mode]
    if not filtered:
        return "not used; no rank has a system call filter (Seccomp: 0 in /proc/self/status)"
    return f"not used, but these ranks run under an inherited system call filter: {', '.join(filtered)}"
