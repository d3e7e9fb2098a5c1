"""The variant of the job that tries a failed save again."""

from __future__ import annotations

from typing import cast

from chaosckpt.faults.save_retry import SaveRetry
from chaosckpt.model.fault import JobControl
from chaosckpt.strategies import draw
from tests.strategies import dcp_model
from tests.strategies.kinds import KINDS


def test_it_tells_what_it_changes():
    """Its evidence is what the ranks are told; it does nothing to a job."""
    nobody = cast("JobControl", None)
    assert SaveRetry().prepare(nobody) == "failed saves are tried again once in this attempt"
    assert SaveRetry.retries == 1


def test_it_is_drawn_beside_an_error_that_a_save_may_survive():
    """Goal: in the default mix errors come with and without retries, and retries never without an error."""
    census, scenario = dcp_model.census(), dcp_model.scenario()
    plans = [plan for index in range(2, 400, 2) for plan in draw(1, index, scenario, census, KINDS).attempts]
    errors = [plan for plan in plans if any(fault.ends == "perhaps" for fault in plan.faults)]
    retried = [plan for plan in plans if any(fault.kind == "save-retry" for fault in plan.faults)]
    assert all(plan in errors for plan in retried)
    assert 20 < len(retried) < len(errors) - 20
