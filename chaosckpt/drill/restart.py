"""The restart of a drill: a known step is saved in one allocation and restored in a fresh one, of which a journal tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from chaosckpt.drill.allocation import Allocation
from chaosckpt.engine.rank.environment import filters
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.attempt import AttemptRun, Heard, Listener
from chaosckpt.engine.runner.audit import audit
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.reference import ReferenceJobs, References
from chaosckpt.engine.runner.trial import run_attempt
from chaosckpt.engine.subjects.target import TargetSubject, something_acknowledged
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.process_tree import started
from chaosckpt.engine.wire.programs import TrainingProgram
from chaosckpt.engine.wire.reports import RankEnvironment
from chaosckpt.errors import HarnessError
from chaosckpt.model import journal as j
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.model.topology import Topology

COLLECTIVE_SECONDS = 30.0
"""Ranks that are started cold import torch for seconds, one perhaps much longer than its peer."""
_NEVER_SAVED = 0
PATIENT = Deadlines(golden_seconds=5.0, floor_seconds=20.0, factor=3.0)
"""Everything in a drill runs alone, so that a hang needs no second look: three times the deadline at once."""


class Allocated(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one allocation of a restart, beside the journal."""

    environments: tuple[RankEnvironment, ...] = ()
    temporary_found: tuple[str, ...] = ()
    """What lay in its temporary directory before its ranks were started."""


class ObservedRestart(msgspec.Struct, frozen=True, kw_only=True):
    """A restart as it was carried out. `new` is None where nothing was saved that could have been restored."""

    journal: j.Journal
    topology: Topology
    known_step: int
    python: str = ""
    """The interpreter of the fresh allocation; empty: this one."""
    own_filters: int = 0
    """How many seccomp filters the harness itself is under."""
    old: Allocated
    new: Allocated | None = None
    local_files: dict[int, int] = {}
    """How many files each old node's own storage held when it was dropped."""


class _Finds(Listener):
    """What ranks find around them."""

    environments: tuple[RankEnvironment, ...] = ()

    def heard(self, message: Heard) -> None:
        if isinstance(message, RankEnvironment):
            self.environments = (*self.environments, message)


class Restarting:
    """Carries out one restart. Reference jobs run on `golden`, an arena of its own that outlives the allocations.

    `topology` and `python` are those of the fresh allocation; `environment` is all that it is given of this process's own.
    """

    def __init__(
        self,
        subject: TargetSubject,
        shared: Path,
        golden: Arena,
        *,
        known_step: int,
        topology: Topology,
        python: str = "",
        environment: Mapping[str, str],
        progress: Callable[[str], None],
    ) -> None:
        self._subject = subject
        self._scenario = scenario = subject.scenario
        self._shared = shared
        self._golden = golden
        self._references = References(subject.reference_jobs or ReferenceJobs())
        self._known = known_step
        self._first = scenario.topology.topologies[0]
        self._second = topology
        self._python = python
        self._environment = environment
        self._progress = progress
        self._events: list[j.AnyEvent] = []

    def run(self) -> ObservedRestart:
        """Save, end, restore in a fresh allocation, train on. Raises HarnessError for trouble of the harness."""
        name = f"drill, restart as {self._second}{' under ' + self._python if self._python else ''}"
        self._record(self._subject.started(name, Schedule((AttemptPlan(),)), self._golden))
        old, files = self._save()
        new = self._restore(files) if something_acknowledged(self._events) else None
        self._record(j.TrialEnded())
        return ObservedRestart(
            journal=j.Journal(tuple(self._events)),
            topology=self._second,
            known_step=self._known,
            python=self._python,
            own_filters=filters("self"),
            old=old,
            new=new,
            local_files=files,
        )

    def _record(self, event: j.AnyEvent) -> None:
        self._events.append(event)

    def _save(self) -> tuple[Allocated, dict[int, int]]:
        self._progress(f"saving step {self._known} and ending the job")
        allocation = Allocation(self._scenario, self._shared, modules=self._golden.nodes[0].modules)
        try:
            allocation.empty_shared()
            finds, order = self._attempt(allocation, 0, self._first, stop_after=self._known)
            # Asked for a step that is never saved, the target lists what it retains and loads nothing: that is the restore's part.
            audit(allocation.arena, order, self._first, (_NEVER_SAVED,), self._record, PATIENT)
            files = allocation.local_files()
        finally:
            allocation.close()
        self._refer(0, self._first)
        return _allocated(finds, ()), files

    def _restore(self, files: Mapping[int, int]) -> Allocated:
        ranks = f"{self._second.world_size} ranks" if self._second.world_size > 1 else "1 rank"
        self._progress(
            f"restoring with {ranks} in a fresh allocation" + (f", under {self._python}" if self._python else "")
        )
        for node, count in sorted(files.items()):
            if count:
                self._record(
                    j.StorageDestroyed(attempt=1, tier="local", node=node, files=count, cause="local-storage-loss")
                )
        allocation = Allocation(
            self._scenario, self._shared, fresh=True, environment=self._environment, python=self._python
        )
        try:
            found = allocation.empty_temporary()
            finds, _ = self._attempt(allocation, 1, self._second)
        finally:
            allocation.close()
        self._refer(1, self._second)
        return _allocated(finds, found)

    def _attempt(
        self, allocation: Allocation, number: int, topology: Topology, stop_after: int | None = None
    ) -> tuple[_Finds, AttemptOrder]:
        order = AttemptOrder(
            attempt=number,
            intent="resume" if number else "start",
            world_size=topology.world_size,
            places=(),
            collective_timeout_seconds=COLLECTIVE_SECONDS,
            program=TrainingProgram(stop_after=stop_after, report_environment=True),
        )
        finds = _Finds()
        groups = self._scenario.topology.groups
        run = AttemptRun(allocation.arena, order, topology, (), self._record, PATIENT, groups, finds)
        launch = "exec" if number else self._subject.launch()
        run_attempt(run, order, topology, self._record, closing=bool(number), launch=launch)
        return finds, msgspec.structs.replace(order, program=TrainingProgram())

    def _refer(self, number: int, topology: Topology) -> None:
        reference = self._references.after(self._events, number, topology, self._golden, PATIENT)
        if reference is not None:
            self._record(reference)


def _allocated(finds: _Finds, found: Sequence[str]) -> Allocated:
    seen = tuple(sorted(finds.environments, key=lambda one: one.rank))
    alive = tuple(one.pid for one in seen if started(one.pid) == one.began)
    if alive:
        raise HarnessError(f"processes {alive} of the old allocation are still running")
    return Allocated(environments=seen, temporary_found=tuple(found))
