"""Options of a campaign: kept in its run directory, and read back wherever that was moved to."""

from __future__ import annotations

import pytest

from chaosckpt.campaign import options
from chaosckpt.campaign.options import FuzzOptions
from chaosckpt.errors import UsageError
from chaosckpt.model.scenario import Scenario, TargetSettings

SCENARIO = Scenario(name="x", target=TargetSettings(use="dcp", options={"keep": 3}))


def test_options_come_back_from_a_moved_run(tmp_path):
    """What was stored is read back, with the directory in which the run lies now."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    stored = FuzzOptions(scenario=SCENARIO, run=str(here), seed=7, trials=12, max_inconclusive=0.5)
    options.store(stored)
    here.rename(there)
    found = options.load(there)
    assert found.run_directory == there
    assert (found.scenario, found.seed, found.trials, found.max_inconclusive) == (SCENARIO, 7, 12, 0.5)


@pytest.mark.parametrize(("content", "part"), [(None, "ended before it began"), ("{", "can't be read")])
def test_options_that_are_not_there(tmp_path, content, part):
    """A run without readable options is refused with a sentence."""
    if content is not None:
        (tmp_path / options.FILE).write_text(content)
    with pytest.raises(UsageError, match=part):
        options.load(tmp_path)


@pytest.mark.parametrize(
    ("minutes", "hours", "seconds"), [(None, None, None), (1.5, None, 90), (None, 2, 7200), (30, 1, 5400)]
)
def test_times_add_up(minutes, hours, seconds):
    """One hour and thirty minutes are an hour and a half."""
    assert options.budget_seconds(minutes, hours) == seconds


@pytest.mark.parametrize("name", ["", "1", "1:", ":2", "1:2:3", "a:1", "-1:2", "1.5:2", "1: 2"])
def test_names_of_trials(name):
    """Only SEED:INDEX names a trial; the refusal shows what was given."""
    assert options.parse_trial("1:17") == (1, 17)
    with pytest.raises(UsageError, match="SEED:INDEX"):
        options.parse_trial(name)
