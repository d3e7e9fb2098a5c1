"""One warm arena for all cases: they differ in a few lines, not in what their ranks import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pytest

from chaosckpt.campaign.execution import Executor, SharedExclusiveLock
from chaosckpt.engine.runner.arena import open_local
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.subjects import subject_of
from chaosckpt.model import journal as j
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import Schedule
from chaosckpt.model.verdict import Verdict
from tests.engine.case import scenario_of
from tests.power.warm_arena import use


class Impatient(Deadlines, frozen=True):
    """For cases that are deadlocks, which end by the job's own limit on a collective."""

    @property
    def collective_seconds(self) -> float:
        """Far above what a collective takes here."""
        return 3.0


IMPATIENT = Impatient(golden_seconds=0.1, floor_seconds=2.0)
"""Others hang, which is waited for three times as long again. A busy machine takes a second for nothing at all."""

PATIENT = Deadlines(golden_seconds=1.0, floor_seconds=6.0)
"""For whatever ends by itself: neither a busy machine nor a child process that imports torch is taken for a hang."""


class Run(Protocol):
    """Runs a schedule of a scenario, of two nodes at most, and judges it."""

    def __call__(
        self, scenario: Scenario, schedule: Schedule, deadlines: Deadlines = PATIENT
    ) -> tuple[j.Journal, Verdict]: ...


@pytest.fixture(scope="session")
def run() -> Iterator[Run]:
    """One for all tests."""
    arena = open_local(scenario_of("dcp-async", ((1, 1),)))

    def run(scenario: Scenario, schedule: Schedule, deadlines: Deadlines = PATIENT) -> tuple[j.Journal, Verdict]:
        use(arena, scenario)
        executor = Executor(subject_of(scenario), arena, deadlines, SharedExclusiveLock(), lambda trial, event: None)
        executed = executor.run(schedule, "0:0")
        return executed.journal, executed.verdict

    yield run
    arena.close()
