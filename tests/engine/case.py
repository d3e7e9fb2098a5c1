"""A scenario with its arena and census, on which tests run schedules and look at what is left on disk."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from chaosckpt.campaign.execution import Executor, SharedExclusiveLock
from chaosckpt.engine.golden.census import measure
from chaosckpt.engine.runner.arena import Arena, open_local
from chaosckpt.engine.runner.attempt import AttemptRun
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.subjects import Prepared, subject_of
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.faults.cut import Cut
from chaosckpt.model import journal as j
from chaosckpt.model.census import Census, Point
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.operation import Operation, When
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.model.verdict import Verdict
from chaosckpt.scenario import load as scenarios

PATIENT = Deadlines(golden_seconds=0.5, floor_seconds=4.0)
_UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def scenario_of(use: str, ranks: Sequence[Sequence[int]] = ((1, 1),), **more: object) -> Scenario:
    """A scenario of a registered target with a short job: three saves in three steps."""
    workload = {"steps": 3, "save_every": 1, **more.pop("workload", {})}  # type: ignore[dict-item]
    target = {"use": use, **more.pop("target", {})}  # type: ignore[dict-item]
    topology = {"ranks": [list(nodes) for nodes in ranks]}
    return scenarios.parse({"name": use, "target": target, "workload": workload, "topology": topology, **more})


class Case:
    """One target on one local arena."""

    def __init__(self, scenario: Scenario, arena: Arena | None = None) -> None:
        self.scenario = scenario
        self.arena = arena or open_local(scenario)
        self._census: Census | None = None
        self._executor = self._execute()

    def _execute(self) -> Executor:
        """One executor for all trials, so that a reference job is run once."""
        prepared = None if self._census is None else Prepared(census=self._census)
        subject = subject_of(self.scenario, prepared)
        return Executor(subject, self.arena, PATIENT, SharedExclusiveLock(), lambda trial, event: None)

    @property
    def census(self) -> Census:
        """Measured once, when it is first asked for."""
        if self._census is None:
            self._census = measure(self.scenario, self.arena)
            self._executor = self._execute()
        return self._census

    @property
    def measured(self) -> bool:
        """Whether the census has been taken."""
        return self._census is not None

    def run(self, *attempts: Sequence[Fault], trial: str = "0:0") -> tuple[j.Journal, Verdict]:
        """Run a schedule with these faults in these attempts, and judge it."""
        schedule = Schedule(tuple(AttemptPlan(tuple(faults)) for faults in attempts))
        return self.run_schedule(schedule, trial)

    def run_schedule(self, schedule: Schedule, trial: str = "0:0") -> tuple[j.Journal, Verdict]:
        executed = self._executor.run(schedule, trial)
        return executed.journal, executed.verdict

    def cut_only(self, *faults: Fault) -> tuple[str, list[j.AnyEvent]]:
        """One attempt from the start, with these faults; the outcome and the events. The storage stays as it is then."""
        topology = self.scenario.topology.topologies[0]
        self.arena.reset()
        order = AttemptOrder(
            attempt=0,
            intent="start",
            world_size=topology.world_size,
            places=(),
            faults=tuple(fault.to_builtins() for fault in faults),
            record="operations",
            collective_timeout_seconds=PATIENT.collective_seconds,
        )
        events: list[j.AnyEvent] = []
        outcome = AttemptRun(self.arena, order, topology, faults, events.append, PATIENT).run()
        return outcome, events

    def performed(self) -> list[list[Operation]]:
        """What each rank has done in the last attempt, wholly or in part."""
        kept = self.arena.nodes[0].records()
        return [[row.operation for row in rank] for rank in kept]

    def point(self, wanted: Callable[[Point], bool], which: int = 0, resumed_from: int | None = None) -> Point:
        """The which-th point of a golden run for which `wanted` holds."""
        run = self.census.run(self.scenario.topology.topologies[0], resumed_from)
        assert run is not None
        return [point for point in run.points if wanted(point)][which]

    def trigger(
        self, op: str, when: When = "before", *, rank: int = 0, save: int | None = 2, which: int = 0
    ) -> Trigger:
        """A trigger at the which-th operation `op` of a rank in a save."""
        point = self.point(lambda p: p.address.op == op and p.address.rank == rank and p.label.step == save, which)
        return Trigger(point.address, when, (point.length or 0) // 2 if when == "torn" else 0)

    def in_recovery(
        self, op: str, when: When = "before", *, rank: int = 0, resumed_from: int = 1, which: int = 0
    ) -> Trigger:
        """A trigger at an operation of the recovery from a step."""
        point = self.point(
            lambda p: p.address.op == op and p.address.rank == rank and p.label.step is None, which, resumed_from
        )
        return Trigger(point.address, when)

    def cut_after_commit(self, step: int) -> Cut:
        """The whole job is killed right after the commit of a step."""
        main = self.census.main
        return Cut((Trigger(main.points[main.commits[step]].address, "after"),))

    def snapshot(self) -> str:
        """A digest of everything on the shared tier: names, modes and contents, with DCP's random save id decoded."""
        root = Path(self.arena.tiers(0)["shared"])
        state = hashlib.sha256()
        for path in sorted(root.rglob("*")):
            state.update(f"{path.relative_to(root)} {path.lstat().st_mode:o}\n".encode())
            if path.is_file():
                state.update(hashlib.sha256(_UUID.sub(b"*", path.read_bytes())).digest())
        return state.hexdigest()

    def close(self) -> None:
        self.arena.close()


def landed(journal: j.Journal) -> list[j.FaultInjected]:
    return [event for event in journal.events if isinstance(event, j.FaultInjected)]


def chosen(journal: j.Journal, attempt: int) -> set[int | None]:
    return {event.chosen for event in journal.events if isinstance(event, j.Recovered) and event.attempt == attempt}


def outcomes(journal: j.Journal) -> list[str]:
    return [event.outcome for event in journal.events if isinstance(event, j.AttemptEnded)]
