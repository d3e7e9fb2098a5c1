"""What an interrupted save of a longer run left."""

from __future__ import annotations

import pytest

from chaosckpt.faults.stale_save import StaleSave, _renumbered, _stale
from tests.strategies import dcp_model


def test_it_is_the_beginning_of_a_save_of_the_census():
    """The directories and the first file of every rank, under a much higher step; nothing of the commit or later."""
    found = list(_stale(dcp_model.census().main))
    assert [fault.directories for fault in found] == [(f"shared:step_{1_000_000 + step}",) for step in (2, 4, 6)]
    for fault in found:
        assert all(name.endswith("_0.distcp") for name in fault.files)


@pytest.mark.parametrize(
    ("path", "step", "found"),
    [
        ("shared:step-000004/a", 4, "shared:step-1000004/a"),
        ("shared:step-0000000004", 4, "shared:step-0001000004"),
        ("shared:step_4/__4_0.distcp", 4, None),
        ("shared:latest/a", 4, None),
        ("shared:step_4/*", 4, None),
        ("local:step_4", 4, None),
    ],
)
def test_only_a_plain_step_is_renumbered(path, step, found):
    """Where the number could mean a rank as well, or isn't there, nothing is made up."""
    assert _renumbered(path, step) == found


def test_it_is_planted_before_an_attempt(job):
    """The names that were made are the evidence."""
    fault = StaleSave(("shared:step_9",), ("shared:step_9/a",))
    assert fault.prepare(job) == "what was done"
    assert job.acts == ["mutate shared of None: Plant"]
    assert [simpler.files for simpler in fault.simpler()] == [()]
