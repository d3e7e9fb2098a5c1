"""The front of `reproduce`: what it refuses. Replaying itself is tested with the campaign."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "name what to reproduce"),
        (("--scenario", "dcp"), "--trial SEED:INDEX"),
        (("--trial", "1:2"), "--scenario SCENARIO"),
        (("folder", "--trial", "1:2"), "either"),
        (("--scenario", "dcp", "--trial", "17"), "'17' is not the name of a trial"),
        (("--scenario", "dpc", "--trial", "1:17"), "did you mean 'dcp'"),
        (("folder", "--times", "0"), "--times"),
    ],
)
def test_misuse(run, arguments, part):
    """Bad input is exit code 2 with the offending value."""
    result = run("reproduce", *arguments)
    assert result.code == 2
    assert part in result.err
