"""`measure`: what `chaosckpt measure` finds by the real clock on this machine, and how long finding it takes."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from benchmarks.result import Result, Settings, number
from chaosckpt.measure.measurement import Measurement, Spread
from chaosckpt.measure.measuring import measure as measured
from chaosckpt.measure.sweep import MeasureOptions
from chaosckpt.scenario import load as scenario

SCENARIOS = ("torch-save-atomic", "dcp-async")
"""One whose saves are finished when they return, and one that goes on writing while training does."""
SIZE_BYTES = 64_000_000


def measure(settings: Settings) -> Iterator[Result]:
    """Both kinds of target at a checkpoint of 64 MB on two ranks, beside one neighbour; nothing is demanded of the figures."""
    for name in SCENARIOS:
        options = MeasureOptions(
            scenario=scenario.find(name), sizes=(SIZE_BYTES,), repeats=settings.times(usual=5, quick=2)
        )
        began = time.monotonic()
        found = measured(options)
        took = time.monotonic() - began
        yield from _results(name, found)
        yield number("measure", f"the whole measurement, {name}", [took], "s")


def _results(name: str, found: Measurement) -> Iterator[Result]:
    yield _seconds(f"stall of a save, {name}", found.stall_seconds)
    yield _seconds(f"completion of a save, {name}", found.completion_seconds)
    beside = [figure.completion_while_training_seconds for figure in found.figures]
    if any(beside):
        slowest = max((spread for spread in beside if spread), key=lambda spread: spread.median)
        yield _seconds(f"completion of a save while training, {name}", slowest)
    for restart in found.restarts:
        parts = {
            part: getattr(restart, part).median
            for part in ("process_start_seconds", "discover_seconds", "load_seconds", "first_step_seconds")
        }
        words = f"restart with a {restart.cache} page cache, {name}"
        yield msgspec.structs.replace(_seconds(words, restart.total_seconds), details=parts)
    for contention in found.contention:
        yield number("measure", f"completion beside {contention.neighbours} neighbour, {name}", [contention.ratio], "×")


def _seconds(words: str, spread: Spread) -> Result:
    return number("measure", words, spread.samples, "s")
