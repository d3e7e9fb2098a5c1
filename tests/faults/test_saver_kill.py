"""The kill of a saver process."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.faults.saver_kill import SaverKill
from chaosckpt.model.fault import Trigger
from tests.faults.operations import address, trigger

IN_CHILD = Trigger(msgspec.structs.replace(address(), role="child"))


def test_only_the_process_at_the_trigger_is_killed(job):
    """The rank lives on: it is for it to notice."""
    SaverKill(IN_CHILD).inject(job)
    assert job.acts == ["await rest", "kill process"]


def test_it_strikes_children_only():
    """An operation of the rank itself is refused, and shrinking doesn't move it there."""
    with pytest.raises(ValueError, match="no operation of a child process"):
        SaverKill(trigger())
    assert SaverKill(IN_CHILD).moved([trigger()]) == SaverKill(IN_CHILD)
