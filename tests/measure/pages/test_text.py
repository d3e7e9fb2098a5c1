"""The text of a measurement and of a comparison, as a terminal shows it."""

from __future__ import annotations

import io

import pytest
from msgspec.structs import replace
from rich.console import Console

from chaosckpt.measure.comparison import compared
from chaosckpt.measure.failure_rate import counted
from chaosckpt.measure.interval import advise, measured_inputs
from chaosckpt.measure.measurement import Measurement, document
from chaosckpt.measure.pages.sections import headlines
from chaosckpt.measure.pages.text import comparison_text, measurement_text
from tests.measure.pages.measurements import BARE, CAPACITY, FIGURES, FULL, RESTARTS


def shown(renderable, width: int = 200) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, soft_wrap=True, highlight=False).print(renderable)
    return stream.getvalue()


def line(measurement: Measurement, name: str) -> str:
    """The first line that begins with the name."""
    lines = shown(measurement_text(measurement)).splitlines()
    return next(entry for entry in lines if entry.strip().startswith(name))


def test_the_eight_figures_come_first():
    """The eight figures stand above everything else, in their order, each on a line."""
    lines = shown(measurement_text(FULL)).splitlines()
    names = ["interval", "checkpoint size", "rank count", "foreground stall", "full completion", "contention impact"]
    names += ["retained generations", "restart"]
    assert [entry.name for entry in headlines(FULL)] == names
    for number, name in enumerate(names):
        assert lines[number + 3].strip().startswith(name)


def test_figures_have_their_spread():
    """The slowest rank's median leads, with the lowest and the highest sample behind it."""
    assert "315 ms (300 ms to 375 ms)" in line(FULL, "foreground stall")
    assert "4.62 s (4.51 s to 4.73 s)" in line(FULL, "restart")
    assert "cold page cache" in line(FULL, "restart")


def test_what_the_figures_hold_for():
    """The failure boundary, each file system with options and guarantees, versions and the absent gate stand on the first page."""
    text = shown(measurement_text(FULL))
    first = text[: text.index("\nInterval")]
    for part in (
        "loss of all processes, and of node-local storage",
        "storage: shared ext4 from /dev/vda at / with rw,relatime,discard",
        "tmpfs from tmpfs at /shm",
        "measured 2026-03-01T09:30:00+00:00 on node17",
        "command chaosckpt measure dcp-async --neighbours 2",
        "rename replaces a name atomically",
        "https://docs.kernel.org/admin-guide/ext4.html",
        "python 3.11.7, torch 2.13.0",
        "no rank has a system call filter",
    ):
        assert part in " ".join(first.split())


def test_a_filter_is_told():
    """A rank that runs under a filter of system calls is named."""
    assert "inherited system call filter: 1" in shown(measurement_text(replace(FULL, filters={"0": 0, "1": 2})))


def test_what_was_not_measured_says_so():
    """Without restarts and neighbours their figures say that they were not measured, and no table of them is shown."""
    assert "not measured" in line(BARE, "restart")
    assert "not measured" in line(BARE, "contention impact")
    text = shown(measurement_text(BARE))
    for title in ("Backlog", "Beside neighbours", "Scale", "Saves while training", "Single operations"):
        assert title not in text


def test_every_detail_has_its_table():
    """Saves, training, backlog, both restarts, capacity, storage, latency, neighbours and scale each have their table."""
    text = shown(measurement_text(FULL))
    for title in (
        "Saves, with no training beside them",
        "Saves while training goes on",
        "Backlog",
        "cold page cache",
        "warm page cache",
        "Capacity",
        "Storage by rank",
        "Single operations",
        "Beside neighbours",
        "Scale",
    ):
        assert title in text
    assert "slowest in completion: rank 1" in text


def test_a_slowdown_that_may_be_chance_is_told():
    """Where steps beside a save took no longer than some without one, the table says that they overlap."""
    alike = tuple(replace(figure, step_seconds_during_save=figure.step_seconds) for figure in FIGURES)
    assert "may be chance" not in shown(measurement_text(FULL))
    assert "may be chance" in shown(measurement_text(replace(FULL, figures=alike)))


def test_the_interval_cites_its_formulas():
    """Young and Daly are cited with their year and DOI, and said to be valid or not."""
    assert "which applies" in line(FULL, "Young")
    assert "10.1145/361147.361115" in line(FULL, "Young")
    assert "10.1016/j.future.2004.11.016" in line(FULL, "Daly")


def test_the_dominant_input_is_named():
    """The input that weighs most is named on the first page and below the weights."""
    assert f"depends most on: {FULL.advice.dominant}" in line(FULL, "interval")
    assert f"dominant: {FULL.advice.dominant}" in shown(measurement_text(FULL))


def test_a_limit_that_does_not_hold_leads():
    """A tolerated loss that can't be kept stands on the first page and in capitals among the limits."""
    advice = advise(measured_inputs(FIGURES, RESTARTS, CAPACITY, FULL.advice.failure_rate, tolerated_loss_seconds=1.0))
    text = shown(measurement_text(replace(FULL, advice=advice)))
    assert "LIMIT NOT KEPT: tolerated loss" in text[: text.index("\nInterval")]
    assert "DOES NOT HOLD" in text


@pytest.mark.parametrize(("failures", "words"), [(4, "4 failures in 4 d: one in 24 h"), (0, "0 failures in 4 d")])
def test_counted_failures(failures, words):
    """A failure rate that was counted shows the count, the time and its bounds."""
    rate = counted(failures, 4 * 86400.0)
    advice = advise(measured_inputs(FIGURES, RESTARTS, CAPACITY, rate))
    text = " ".join(shown(measurement_text(replace(FULL, advice=advice))).split())
    assert words in text
    assert "between its bounds the advised interval goes from" in text
    assert ("no bound" in text) == (failures == 0)


def test_no_cell_is_taken_for_markup():
    """A name with square brackets is shown as it is."""
    system = replace(FULL.file_systems[0], mount_options="rw,[bold]odd[/bold]")
    assert "[bold]odd[/bold]" in shown(measurement_text(replace(FULL, file_systems=(system,))))


def test_a_narrow_terminal_loses_nothing():
    """On eighty columns words are wrapped, and none is cut."""
    assert "…" not in shown(measurement_text(FULL), width=80)


def test_a_comparison():
    """The table shows both medians and the ratio; what lies within the spread and what else differs is told."""
    slower = replace(FULL, target="torch-save", figures=(FIGURES[1], FIGURES[1]))
    text = shown(comparison_text(compared(document(BARE), document(slower), "a.json", "b.json")))
    stall = next(entry for entry in text.splitlines() if entry.startswith("stall"))
    assert stall.split() == ["stall", "210", "ms", "315", "ms", "×1.5"]
    assert "target: dcp-async → torch-save" in text
    same = shown(comparison_text(compared(document(FULL), document(FULL), "a.json", "b.json")))
    assert "What else differs" not in same
