"""A target as subject: a checkpointer behind the protocol of chaosckpt.targets, in the harness's own training job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from chaosckpt.engine.golden.census import measure
from chaosckpt.engine.golden.reach import QUIESCENCE_BY_TIME
from chaosckpt.engine.runner import gate_mode
from chaosckpt.engine.runner.arena import Arena, open_local, storage_left
from chaosckpt.engine.runner.audit import audit, audit_kept, wanted
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.kept import Keeper
from chaosckpt.engine.runner.ranks import Record
from chaosckpt.engine.runner.reference import ReferenceJobs, References
from chaosckpt.engine.subjects.base import Ended, Launch, Prepared, Subject, SubjectTrial
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.sources import Sources, sources
from chaosckpt.model import journal as j
from chaosckpt.model.fault import Fault
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.scenario import DEFAULT_SCENARIO, Scenario
from chaosckpt.model.schedule import PLAIN_RESTART, Schedule, to_builtins
from chaosckpt.model.topology import Topology
from chaosckpt.plugins import fault_kinds, is_target_file, module_of_target

PLAIN_STEPS = 8
"""Of how many saves of a plain restart storage is kept as it was when they were acknowledged, to be audited whatever retention does."""


class TargetSubject(Subject):
    """A target. `referenced`: each attempt is followed by what it should have trained, found by a job without any checkpointer."""

    spreads = True
    cached = True

    def __init__(self, scenario: Scenario, prepared: Prepared | None = None, *, referenced: bool = True) -> None:
        super().__init__(scenario, prepared)
        self.reference_jobs = ReferenceJobs() if referenced else None

    @property
    def needs_golden_runs(self) -> bool:
        """A registered target is what it was where versions are equal; the user's own file may have been changed."""
        return is_target_file(self.scenario.target.use)

    def sources(self, modules: Sequence[str] = ()) -> Sources:
        use = self.scenario.target.use
        if is_target_file(use):
            file = Path(use.rpartition(":")[0])
            return sources([file], [file.parent], modules)
        return sources([], [], [module_of_target(use), *modules])

    def open_arena(self) -> Arena:
        known = () if self.prepared is None else self.prepared.census.nonces
        return open_local(self.scenario, self.modules, nonces=known)

    def golden_runs(self, progress: Callable[[str], None]) -> Prepared:
        progress("starting the first node")
        mode = gate_mode.choose(self.scenario)
        with closing(self.open_arena()) as arena:
            census = measure(self.scenario, arena, progress=progress, sweeping=True)
            by_time = (QUIESCENCE_BY_TIME,) if census.main.by_time else ()
            return Prepared(
                census=census,
                modules=arena.nodes[0].modules,
                gate=mode,
                launch=self.launch(),
                remarks=(*_bounds(self.scenario), *by_time),
            )

    def kinds(self) -> dict[str, type[Fault]]:
        return fault_kinds()

    def launch(self) -> Launch:
        return self.scenario.run.launch

    def guarantees(self, arena: Arena) -> tuple[Guarantee, ...]:
        """What the target is held to: the scenario's word, else its own."""
        settled = self.scenario.target.guarantees
        return arena.nodes[0].facts.guarantees if settled is None else settled

    def started(self, trial: str, schedule: Schedule, arena: Arena) -> j.TrialStarted:
        facts, workload = arena.nodes[0].facts, self.scenario.workload
        return j.TrialStarted(
            trial=trial,
            schedule=to_builtins(schedule),
            guarantees=self.guarantees(arena),
            scenario=self.scenario.name,
            total_steps=workload.steps,
            fresh_start=self.scenario.run.fresh_start,
            keeps_rng=facts.keeps_rng,
            outstanding=facts.outstanding,
            at_end=workload.at_end,
        )

    def trial(self, arena: Arena, deadlines: Deadlines, record: Record, events: Sequence[j.AnyEvent]) -> TargetTrial:
        return TargetTrial(self, arena, deadlines, record, events)


def _bounds(scenario: Scenario) -> tuple[str, ...]:
    """What the default scenario leaves out, for a user who wrote none."""
    if not scenario.description.endswith(DEFAULT_SCENARIO):
        return ()
    ranks = max(topology.world_size for topology in scenario.topology.topologies)
    saves = len(scenario.workload.save_steps)
    return (
        f"the default scenario was used: at most {ranks} ranks, {saves} saves, one under way at a time; "
        "a scenario of your own has more (topology.ranks, workload.outstanding), and `chaosckpt init` writes one",
    )


class TargetTrial(SubjectTrial):
    """What a target acknowledged so far decides how it is launched; audits and references show what it kept and trained."""

    def __init__(
        self,
        subject: TargetSubject,
        arena: Arena,
        deadlines: Deadlines,
        record: Record,
        events: Sequence[j.AnyEvent],
    ) -> None:
        super().__init__(record)
        self._arena = arena
        self._deadlines = deadlines
        self._events = events
        self._census = None if subject.prepared is None else subject.prepared.census
        self._awaited = subject.scenario.workload.at_end == "await"
        first = events[0] if events else None
        self._plain = isinstance(first, j.TrialStarted) and first.schedule == to_builtins(PLAIN_RESTART)
        self._plain_steps = _spread(subject.scenario.workload.save_steps) if self._plain else ()
        self._launched = False
        self._guarantees = subject.guarantees(arena)
        self._keeper: Keeper | None = None
        self._references = None if subject.reference_jobs is None else References(subject.reference_jobs)

    def order(self, number: int, topology: Topology, faults: Sequence[Fault]) -> AttemptOrder:
        return AttemptOrder(
            attempt=number,
            intent="resume" if something_acknowledged(self._events) else "start",
            world_size=topology.world_size,
            places=(),
            faults=tuple(fault.to_builtins() for fault in faults),
            collective_timeout_seconds=self._deadlines.collective_seconds,
            retries=sum(fault.retries for fault in faults),
        )

    def recorder(self, topology: Topology) -> Record:
        """See SubjectTrial. What is acknowledged after an error is kept, so that it can be audited whatever becomes of it."""
        steps = self._plain_steps if not self._launched else ()
        self._launched = True
        keeper = self._keeper = Keeper(self._arena, topology, self._guarantees, steps)

        def record(event: j.AnyEvent) -> None:
            self._record(event)
            keeper.see(event)

        return record

    def after(self, attempt: Ended) -> None:
        """Audit what was acknowledged, where that could show something new; then train what should have been trained."""
        events, number, topology = self._events, attempt.number, attempt.topology
        assert self._keeper is not None
        try:
            self._audit(attempt, self._keeper)
        finally:
            self._keeper.discard()
        if self._references is not None:
            reference = self._references.after(events, number, topology, self._arena, self._deadlines)
            if reference is not None:
                self._record(reference)

    def _audit(self, attempt: Ended, keeper: Keeper) -> None:
        events, order, topology, deadlines = self._events, attempt.order, attempt.topology, self._deadlines
        asked = wanted(events, attempt.number, closing=attempt.closing, awaited=self._awaited, plain=self._plain)
        if asked:
            answered = audit(self._arena, order, topology, asked, self._record, deadlines)
            audit_kept(self._arena, order, topology, keeper, answered, self._record, deadlines)

    def end(self, last: int) -> None:
        """Record what lies on storage. Without a gate nobody knows how much a save writes, so that nothing bounds it."""
        if self._census is not None and self._census.save_bytes:
            self._record(storage_left(self._arena, self._census, last))


def _spread(steps: Sequence[int]) -> tuple[int, ...]:
    """At most PLAIN_STEPS of the steps, evenly spread, the first and the last among them."""
    most = min(PLAIN_STEPS, len(steps))
    return tuple(steps[i * (len(steps) - 1) // max(1, most - 1)] for i in range(most))


def something_acknowledged(events: Sequence[j.AnyEvent]) -> bool:
    """Whether some save was acknowledged by every rank of its attempt, so that the next launch must resume."""
    worlds = {event.attempt: sum(event.ranks) for event in events if isinstance(event, j.AttemptStarted)}
    ranks: dict[tuple[int, int], set[int]] = {}
    for event in events:
        if isinstance(event, j.Acknowledged):
            ranks.setdefault((event.attempt, event.step), set()).add(event.rank)
    return any(len(found) == worlds[attempt] for (attempt, _), found in ranks.items())
