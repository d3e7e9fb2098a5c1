"""One trial: a schedule executed, attempt by attempt, into a journal. Plain Python over nodes; it needs no Ray."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chaosckpt.engine.arena import Arena
from chaosckpt.engine.attempt import AttemptRun, Record
from chaosckpt.engine.audit import audit, wanted
from chaosckpt.engine.deadlines import Deadlines
from chaosckpt.engine.leftovers import storage_left
from chaosckpt.engine.messages import AttemptOrder
from chaosckpt.engine.reference import References
from chaosckpt.errors import HarnessError
from chaosckpt.model import journal as j
from chaosckpt.model.census import Census
from chaosckpt.model.fault import Fault
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import AttemptPlan, Schedule, to_builtins
from chaosckpt.model.topology import Topology

ObserveStorage = Callable[[int, Arena], None]
"""Looks at an arena's storage while no rank runs; the number is that of the attempt that will find it so."""


def run_trial(
    scenario: Scenario,
    schedule: Schedule,
    arena: Arena,
    *,
    trial: str,
    deadlines: Deadlines,
    write: Callable[[j.AnyEvent], None] = lambda event: None,
    references: References | None = None,
    census: Census | None = None,
    observe_storage: ObserveStorage | None = None,
) -> j.Journal:
    """Run every attempt of the schedule, then a closing one without faults, on emptied storage.

    `write` receives each event as it happens. With `references`, each attempt is followed by what it should have trained; with
    the `census`, the trial by what it left on storage. `observe_storage` is called before each launch, when all that strikes
    between attempts has struck, with the attempt's number, and after the last one with the next number. Harness trouble ends the
    trial and stands in the journal (HarnessTrouble); it is raised as well, so that the caller can replace what broke.
    """
    started = j.TrialStarted(
        trial=trial,
        schedule=to_builtins(schedule),
        guarantees=guarantees(scenario, arena),
        scenario=scenario.name,
        total_steps=scenario.workload.steps,
        fresh_start=scenario.run.fresh_start,
        keeps_rng=arena.nodes[0].facts.keeps_rng,
        outstanding=arena.nodes[0].facts.outstanding,
        at_end=scenario.workload.at_end,
    )

    def run(record: Record, events: list[j.AnyEvent]) -> None:
        last = _attempts(scenario, schedule, arena, deadlines, record, events, references, observe_storage)
        if census is not None and census.save_bytes:  # without a gate nobody knows how much a save writes
            record(storage_left(arena, census, last))

    return journalled(started, arena, write, run)


def journalled(
    started: j.TrialStarted,
    arena: Arena,
    write: Callable[[j.AnyEvent], None],
    run: Callable[[Record, list[j.AnyEvent]], None],
) -> j.Journal:
    """The journal of a trial that `run` carries out on emptied storage; it records events, and is given those so far.

    Harness trouble ends the trial and stands in the journal; it is raised as well.
    """
    events: list[j.AnyEvent] = []

    def record(event: j.AnyEvent) -> None:
        events.append(event)
        write(event)

    record(started)
    try:
        arena.reset()
        run(record, events)
    except HarnessError as error:
        record(j.HarnessTrouble(what=str(error)))
        record(j.TrialEnded())
        raise
    record(j.TrialEnded())
    return j.Journal(tuple(events))


def guarantees(scenario: Scenario, arena: Arena) -> tuple[Guarantee, ...]:
    """What the target is held to: the scenario's word, else its own."""
    if scenario.target.guarantees is not None:
        return scenario.target.guarantees
    return arena.nodes[0].facts.guarantees


def _attempts(
    scenario: Scenario,
    schedule: Schedule,
    arena: Arena,
    deadlines: Deadlines,
    record: Record,
    events: list[j.AnyEvent],
    references: References | None,
    observe_storage: ObserveStorage | None,
) -> int:
    """Run all attempts; returns the number of the last one."""
    first = scenario.topology.topologies[0]
    plans = (*schedule.attempts, AttemptPlan())
    previous = first
    awaited = scenario.workload.at_end == "await"
    if references is not None:
        references.begin()
    for number, (plan, topology) in enumerate(zip(plans, schedule.topologies(first), strict=True)):
        resumes = something_acknowledged(events)
        order = AttemptOrder(
            attempt=number,
            intent="resume" if resumes else "start",
            world_size=topology.world_size,
            places=(),
            faults=tuple(fault.to_builtins() for fault in plan.faults),
            collective_timeout_seconds=deadlines.collective_seconds,
        )
        groups = scenario.topology.groups
        run = AttemptRun(arena, order, topology, plan.faults, record, deadlines, groups)
        strike_between(run, plan.faults, number, previous, record)
        if observe_storage is not None:
            observe_storage(number, arena)
        closing = number == len(plans) - 1
        record(
            j.AttemptStarted(
                attempt=number, ranks=topology.ranks, intent=order.intent, closing=closing, launch=scenario.run.launch
            )
        )
        run.run()
        arena.heal()
        asked = wanted(events, number, closing=closing, awaited=awaited)
        if asked:
            audit(arena, order, topology, asked, record, deadlines)
        reference = references.after(events, number, topology, arena, deadlines) if references is not None else None
        if reference is not None:
            record(reference)
        previous = topology
    if observe_storage is not None:
        observe_storage(len(plans), arena)
    return len(plans) - 1


def something_acknowledged(events: Sequence[j.AnyEvent]) -> bool:
    """Whether some save was acknowledged by every rank of its attempt, so that the next launch must resume."""
    worlds = {event.attempt: sum(event.ranks) for event in events if isinstance(event, j.AttemptStarted)}
    ranks: dict[tuple[int, int], set[int]] = {}
    for event in events:
        if isinstance(event, j.Acknowledged):
            ranks.setdefault((event.attempt, event.step), set()).add(event.rank)
    return any(len(found) == worlds[attempt] for (attempt, _), found in ranks.items())


def strike_between(run: AttemptRun, faults: tuple[Fault, ...], attempt: int, current: Topology, record: Record) -> None:
    """Strike what strikes between two attempts, with its evidence."""
    for index, fault in enumerate(faults):
        changed = fault.topology(current)
        evidence: Any = f"{current} became {changed}" if changed != current else fault.prepare(run)
        current = changed
        if evidence is not None:
            run.landed.add(index)
            needs = tuple(sorted(fault.needs))
            landed = j.FaultLanded(attempt=attempt, fault=index, kind=fault.kind, evidence=evidence, needs=needs)
            record(landed)
