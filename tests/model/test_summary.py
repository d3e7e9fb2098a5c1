"""Exit codes of campaigns and reproductions, and the shape of `fuzz --json`."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model.summary import Replay, Reproduction
from tests.report.summaries import CLEAN, FOUND


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"violations": 1, "passed": 9}, 1),
        ({"violations": 1, "interrupted": True}, 1),
        ({"interrupted": True}, 130),
        ({"trials": 0, "passed": 0}, 3),
        ({"harness_troubles": 1}, 3),
        ({"inconclusive": 2, "passed": 8}, 0),
        ({"inconclusive": 3, "passed": 7}, 3),
        ({"inconclusive": 3, "passed": 7, "max_inconclusive": 0.5}, 0),
    ],
)
def test_exit_code_of_a_campaign(changes, code):
    """Violations win; without any, a campaign that shows too little is never clean."""
    assert msgspec.structs.replace(CLEAN, **changes).exit_code == code


def test_json_has_the_promised_keys():
    """The keys that scripts rely on are there under their names."""
    found = msgspec.json.decode(msgspec.json.encode(FOUND))
    promised = "trials passed violations inconclusive rate_per_minute coverage run findings"
    assert set(promised.split()) <= set(found)
    assert {"id", "invariant", "root_cause", "count", "faults", "reproduced", "path"} <= set(found["findings"][0])


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [(["pass", "violation"], 1), (["pass", "inconclusive"], 0), (["inconclusive"], 3), ([], 3)],
)
def test_exit_code_of_a_reproduction(outcomes, code):
    """A fixed target passes its finding with 0; one that couldn't be judged doesn't."""
    replays = tuple(Replay(number=1, outcome=outcome, same=False) for outcome in outcomes)
    assert Reproduction(trial="1:1", faults=(), replays=replays).exit_code == code
