"""The front of `fuzz`: what it refuses, and which campaign it asks for."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.campaign import launch, options, run_directory
from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.model.summary import CampaignSummary, Progress
from tests.report.summaries import CLEAN, FOUND, MIX


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """The options of the campaigns that were asked for; running them is the campaign's own business and is tested there."""
    monkeypatch.chdir(tmp_path)
    campaigns: list[FuzzOptions] = []
    results = [CLEAN]

    def fuzz(wanted: FuzzOptions, watch):
        campaigns.append(wanted)
        watch(Progress(phase="search", trials=1, trials_budget=wanted.trials))
        return results[-1]

    monkeypatch.setattr(launch, "fuzz", fuzz)
    return campaigns, results


def test_defaults(run, asked, tmp_path):
    """Without options: 300 trials, seed 1, the next run directory, which keeps the options."""
    assert run("fuzz", "dcp").code == 0
    (wanted,) = asked[0]
    assert (wanted.scenario.name, wanted.trials, wanted.seconds, wanted.seed) == ("dcp", 300, None, 1)
    assert wanted.run_directory == tmp_path / "chaosckpt-runs" / "001"
    assert options.load(wanted.run_directory) == wanted


def test_every_option_arrives(run, asked, tmp_path):
    """What is named on the command line is what the campaign gets."""
    arguments = (
        "--minutes 30 --hours 1 --seed 4 --workers 3 --address auto --keep --max-inconclusive 0.5 --run-dir mine"
    )
    run("fuzz", "dcp", *arguments.split())
    (wanted,) = asked[0]
    assert (wanted.trials, wanted.seconds, wanted.seed, wanted.workers, wanted.address) == (None, 5400, 4, 3, "auto")
    assert (wanted.keep, wanted.max_inconclusive, wanted.run_directory) == (True, 0.5, tmp_path / "mine")


def test_json_is_one_object_and_nothing_else(run, asked):
    """With --json standard output is the summary; progress goes to standard error."""
    asked[1].append(FOUND)
    result = run("fuzz", "dcp", "--json")
    assert msgspec.json.decode(result.out, type=CampaignSummary) == FOUND
    assert "1/300 trials" in result.err
    assert result.code == 1


def test_text_leads_with_the_finding(run, asked):
    """Without --json a person reads the finding, then the counts; the exit code is 1."""
    asked[1].append(FOUND)
    result = run("fuzz", "dcp")
    assert result.out.startswith("VIOLATION")
    assert MIX.command in result.out
    assert result.code == 1


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "name what to fuzz"),
        (("dpc",), "did you mean 'dcp'"),
        (("gone.py:A",), "there is no file gone.py"),
        (("dcp", "--trials", "0"), "--trials"),
        (("dcp", "--minutes", "0"), "--minutes"),
        (("dcp", "--workers", "x"), "'x'"),
        (("dcp", "--max-inconclusive", "2"), "--max-inconclusive"),
        (("--resume", "gone"), "no run directory"),
        (("dcp", "--resume", "gone"), "leave out 'dcp'"),
        (("--resume", "gone", "--run-dir", "x"), "leave out --run-dir"),
    ],
)
def test_misuse_touches_nothing(run, asked, tmp_path, arguments, part):
    """Bad input is exit code 2 with the offending value, before anything is made."""
    result = run("fuzz", *arguments)
    assert result.code == 2
    assert part in result.err
    assert list(tmp_path.iterdir()) == []
    assert asked[0] == []


def test_a_foreign_run_directory_is_refused(run, asked, tmp_path):
    """A directory of the user's with something in it is left alone."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("")
    assert run("fuzz", "dcp", "--run-dir", "mine").code == 2
    assert len(list((tmp_path / "mine").iterdir())) == 1


def test_resume_goes_on_with_what_was_stored(run, asked):
    """--resume takes scenario, seed and budgets from the run, and new budgets from the command line."""
    run("fuzz", "torch-save", "--seed", "9", "--trials", "50")
    where = asked[0][0].run
    run("fuzz", "--resume", where)
    again = asked[0][1]
    assert again == msgspec.structs.replace(asked[0][0], resume=True)
    run("fuzz", "--resume", where, "--minutes", "2")
    assert (asked[0][2].trials, asked[0][2].seconds) == (None, 120)


def test_resume_with_another_seed_is_refused(run, asked, tmp_path):
    """A run has one seed: its trials are named by it."""
    run("fuzz", "dcp", "--seed", "9")
    result = run("fuzz", "--resume", "chaosckpt-runs/001", "--seed", "8")
    assert result.code == 2
    assert "--seed 8 is not the seed 9" in result.err


def test_resume_needs_a_run(run, asked, tmp_path):
    """A marked directory without options ended before it began."""
    run_directory.create(tmp_path / "empty")
    assert "ended before it began" in run("fuzz", "--resume", "empty").err
