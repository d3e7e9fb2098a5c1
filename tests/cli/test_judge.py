"""`judge`: verdicts from stored journals alone."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.campaign import journals, options, run_directory
from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.model import formats
from chaosckpt.model import journal as j
from chaosckpt.model.scenario import Scenario, TargetSettings


@pytest.fixture
def stored(tmp_path):
    """A run with two trials in which the harness failed, so that both are inconclusive."""
    directory = run_directory.create(tmp_path / "run")
    options.store(
        FuzzOptions(scenario=Scenario(name="x", target=TargetSettings(use="dcp")), run=str(directory), trials=2)
    )
    lines = []
    for trial in ("1:0", "1:1"):
        started = j.TrialStarted(
            trial=trial, schedule={"attempts": []}, guarantees=(), scenario="x", format=formats.RUN, total_steps=6
        )
        events = (started, j.HarnessTrouble(what="a lost node"), j.TrialEnded())
        lines += [b'{"trial":"%b","event":%b}\n' % (trial.encode(), j.encode(event)) for event in events]
    (directory / journals.DIRECTORY).mkdir()
    (directory / journals.DIRECTORY / "worker-0.jsonl").write_bytes(b"".join(lines))
    return directory


def test_counts_and_reasons(run, stored):
    """The text has the reasons and the counts; with nothing judged the exit code is 3."""
    result = run("judge", str(stored))
    assert "inconclusive ×2: chaosckpt itself failed: a lost node" in result.out
    assert "2 trials judged: 0 passed, 0 violations, 2 inconclusive" in result.out
    assert result.code == 3


def test_json_has_every_verdict(run, stored):
    """One object with the counts and a verdict for each trial, the same each time."""
    first, second = run("judge", str(stored), "--json"), run("judge", str(stored), "--json")
    assert first == second
    found = msgspec.json.decode(first.out)
    assert (found["trials"], found["inconclusive"]) == (2, 2)
    assert found["verdicts"]["1:1"]["outcome"] == "inconclusive"


def test_explain_names_the_journals_lines(run, stored):
    """One trial is explained, with the place of its first and last event."""
    result = run("judge", str(stored), "--explain", "1:1")
    assert "inconclusive" in result.out.lower()
    assert "#0 is journals/worker-0.jsonl:4, #2 is journals/worker-0.jsonl:6" in result.out
    assert msgspec.json.decode(run("judge", str(stored), "--explain", "1:1", "--json").out)["trial"] == "1:1"


@pytest.mark.parametrize(
    ("arguments", "part"), [(("gone",), "no run directory"), ((".",), "not a run directory"), ((), "RUN")]
)
def test_misuse(run, tmp_path, monkeypatch, arguments, part):
    """A directory that is no run is refused."""
    monkeypatch.chdir(tmp_path)
    result = run("judge", *arguments)
    assert result.code == 2
    assert part in result.err


def test_trials_that_are_not_there(run, stored):
    """A trial that the run doesn't have, and a name that is none, are refused."""
    assert "no complete journal of trial 1:9" in run("judge", str(stored), "--explain", "1:9").err
    assert "'x' is not the name of a trial" in run("judge", str(stored), "--explain", "x").err
