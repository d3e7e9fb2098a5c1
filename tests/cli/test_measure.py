"""`chaosckpt measure`: bad input gets one clear sentence before anything is begun; results go where they were asked for."""

from __future__ import annotations

import json
import platform
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from chaosckpt.cli import measure as command
from chaosckpt.measure import measuring
from chaosckpt.measure.measurement import Measurement, MeasurementDocument
from chaosckpt.measure.sweep import MeasureOptions
from tests.measure.pages.measurements import FULL


@pytest.fixture
def asked(monkeypatch, tmp_path) -> list[MeasureOptions]:
    """What would be measured; a finished measurement is answered instead, since its minutes are other tests' matter."""
    found: list[MeasureOptions] = []

    def measure(options: MeasureOptions, say: object) -> Measurement:
        found.append(options)
        return FULL

    monkeypatch.setattr(measuring, "measure", measure)
    monkeypatch.chdir(tmp_path)
    return found


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name what to measure: a scenario"),
        (["dcpp"], "'dcpp' is neither a scenario file nor a shipped scenario"),
        (["dcp", "--size", "big"], "--size 'big' is no size; write a number with a unit"),
        (["dcp", "--size", "1MB,,2MB"], "--size '' is no size"),
        (["dcp", "--size", "10B"], "--size 10 B is less than the smallest checkpoint of this job"),
        (["dcp", "--size", "900TB"], "needs about"),
        (["dcp", "--ranks", "0"], "--ranks '0' must be whole numbers from 1 on"),
        (["dcp", "--ranks", "1,64"], "--ranks 64 is more than the largest topology of the scenario"),
        (["dcp", "--mtbf", "often"], "--mtbf 'often' is no duration"),
        (["dcp", "--mtbf", "1h", "--failures", "1/1h"], "leave out one of them"),
        (["dcp", "--failures", "7"], "--failures '7' must be a number of failures and the time"),
        (["dcp", "--tolerated-loss", "0s"], "--tolerated-loss '0s' is no duration"),
        (["dcp", "--html", "nowhere/page.html"], "--html nowhere/page.html: there is no directory nowhere"),
        (["dcp", "--compare", "a.json", "b.json"], "--compare measures nothing; leave out 'dcp'"),
        (["--compare", "a.json", "b.json"], "a.json can't be read"),
        (["--compare", "a.json", "b.json", "--html", "p.html", "--mtbf", "1h"], "leave out --html and --mtbf"),
        (["dcp", "--size", f"{'9' * 290}MB"], "needs about"),
        (["dcp", "--size", "10PB"], "a checkpoint of 10 PB on 2 ranks needs about"),
    ],
)
def test_bad_input(run, asked, arguments, sentence):
    """Exit code 2, one sentence with the value and the next step, and nothing was begun."""
    result = run("measure", *arguments)
    assert result.code == 2
    assert sentence in result.err
    assert result.err.count("\n") == 1
    assert result.out == ""
    assert asked == []


def test_an_unmarked_directory_is_left_alone(run, asked, tmp_path: Path):
    """A namespace without the harness's mark is refused, with nothing in it touched."""
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "mine.txt").write_text("mine")
    result = run("measure", "dcp", "--run-dir", str(foreign))
    assert result.code == 2
    assert "is not empty, and not a run directory of chaosckpt; nothing in it was touched" in result.err
    assert [path.name for path in foreign.iterdir()] == ["mine.txt"]
    assert asked == []


def test_a_used_run_directory_is_left_alone(run, asked):
    """Nothing is written over an earlier measurement, and nobody is sent to an option of another command."""
    assert run("measure", "dcp", "--run-dir", "kept").code == 0
    result = run("measure", "dcp", "--run-dir", "kept")
    assert result.code == 2
    assert "already holds a run; choose another --run-dir" in result.err
    assert len(asked) == 1


def test_storage_without_a_directory(run, asked, tmp_path: Path):
    """The scenario's own storage has to be there."""
    scenario = tmp_path / "s.toml"
    scenario.write_text('name = "s"\n[target]\nuse = "dcp"\n[storage]\nshared = "/nowhere/at/all"\n')
    result = run("measure", str(scenario))
    assert result.code == 2
    assert "storage.shared = '/nowhere/at/all' is not a directory; create it" in result.err


def test_everything_that_can_be_asked_for(run, asked):
    """Options become plain values."""
    result = run(
        "measure", "dcp", "--ranks", "2,1", "--size", "64MB,1MB", "--repeats", "3", "--warm-up", "0", "--neighbours", "2",
        "--mtbf", "24h", "--tolerated-loss", "30min",
    )  # fmt: skip
    assert result.code == 0, result.err
    (options,) = asked
    assert (options.ranks, options.sizes) == ((1, 2), (1_000_000, 64_000_000))
    assert (options.repeats, options.warm_up, options.neighbours) == (3, 0, 2)
    assert options.failure_rate is not None
    assert options.failure_rate.mtbf_seconds == 86400.0
    assert options.tolerated_loss_seconds == 1800.0
    assert "full completion" in result.out


def test_json_is_one_object(run, asked):
    """Nothing else is on standard output; it says when, where and by which command line it was made."""
    result = run("measure", "dcp", "--json")
    assert next(iter(json.loads(result.out))) == "interval_seconds"
    details = msgspec.json.decode(result.out, type=MeasurementDocument).details
    came = details.provenance
    assert came is not None
    assert (came.host, came.command) == (platform.node(), "chaosckpt measure dcp --json")
    assert datetime.fromisoformat(came.date).utcoffset() == timedelta(0)
    assert msgspec.structs.replace(details, provenance=FULL.provenance) == FULL


def test_a_run_directory_keeps_json_and_page(run, asked, tmp_path: Path):
    """It can be compared later, and read without a network; --html puts the page elsewhere, too."""
    result = run("measure", "dcp", "--run-dir", "kept", "--html", "page.html")
    assert result.code == 0, result.err
    kept = tmp_path / "kept"
    stored = msgspec.json.decode((kept / command.RESULT).read_bytes(), type=MeasurementDocument)
    assert msgspec.structs.replace(stored.details, provenance=FULL.provenance) == FULL
    assert (kept / command.PAGE).read_text() == (tmp_path / "page.html").read_text()
    compared = run("measure", "--compare", str(kept / command.RESULT), str(kept / command.RESULT))
    assert compared.code == 0
    assert "×1" in compared.out


@pytest.mark.parametrize("lost", ["page", "reader"])
def test_no_result_is_lost_with_another(run, asked, tmp_path: Path, monkeypatch, lost):
    """Where a file can't be written in the end, the figures are still told; where they can't be told, the files are still kept."""
    if lost == "page":
        result = run("measure", "dcp", "--html", "/dev/full")
        assert result.code != 0
        assert "full completion" in result.out
        return

    def gone(found: Measurement, as_json: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_show", gone)
    assert run("measure", "dcp", "--run-dir", "kept").code != 0
    assert (tmp_path / "kept" / command.RESULT).exists()


def test_ratios_as_json(run, asked, tmp_path: Path):
    """A comparison is one object, too."""
    run("measure", "dcp", "--run-dir", "kept")
    file = str(tmp_path / "kept" / command.RESULT)
    found = json.loads(run("measure", "--compare", file, file, "--json").out)
    assert {row["ratio"] for row in found["rows"]} <= {1.0, None}
