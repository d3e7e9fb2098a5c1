"""One trial: a schedule executed, attempt by attempt, into a journal. Plain Python over nodes; it needs no Ray.

The same for every subject: what differs (how an attempt is launched, what is observed after it) is asked of the subject's part in the
trial (SubjectTrial), which the subject makes anew for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.attempt import AttemptRun
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.ranks import Record
from chaosckpt.engine.subjects.base import Ended, Launch, Subject
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.errors import HarnessError
from chaosckpt.model import formats
from chaosckpt.model import journal as j
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.model.topology import Topology

ObserveStorage = Callable[[int, Arena], None]
"""Looks at an arena's storage while no rank runs; the number is that of the attempt that will find it so."""


def run_trial(
    subject: Subject,
    schedule: Schedule,
    arena: Arena,
    *,
    trial: str,
    deadlines: Deadlines,
    write: Callable[[j.AnyEvent], None] = lambda event: None,
    observe_storage: ObserveStorage | None = None,
) -> j.Journal:
    """Run every attempt of the schedule, then a closing one without faults, on emptied storage.

    `write` receives each event as it happens. `observe_storage` is called before each attempt, when all that is injected between
    attempts has been, with the attempt's number, and after the last one with the next number. Harness trouble ends the trial and
    stands in the journal (HarnessTrouble); it is raised as well, so that the caller can replace what broke.
    """
    events: list[j.AnyEvent] = []

    def record(event: j.AnyEvent) -> None:
        events.append(event)
        write(event)

    record(msgspec.structs.replace(subject.started(trial, schedule, arena), format=formats.RUN))
    try:
        arena.reset()
        _run_attempts(subject, schedule, arena, deadlines, record, events, observe_storage)
    except HarnessError as error:
        record(j.HarnessTrouble(what=str(error)))
        record(j.TrialEnded())
        raise
    record(j.TrialEnded())
    return j.Journal(tuple(events))


def _run_attempts(
    subject: Subject,
    schedule: Schedule,
    arena: Arena,
    deadlines: Deadlines,
    record: Record,
    events: Sequence[j.AnyEvent],
    observe_storage: ObserveStorage | None,
) -> None:
    within = subject.trial(arena, deadlines, record, events)
    settings = subject.scenario.topology
    previous = settings.topologies[0]
    plans = (*schedule.attempts, AttemptPlan())
    last = len(plans) - 1
    for number, (plan, topology) in enumerate(zip(plans, schedule.topologies(previous), strict=True)):
        order = within.order(number, topology, plan.faults)
        run = AttemptRun(arena, order, topology, plan.faults, within.recorder(topology), deadlines, settings.groups)
        run.inject_between(previous)
        if observe_storage is not None:
            observe_storage(number, arena)
        outcome = run_attempt(run, order, topology, record, closing=number == last, launch=subject.launch())
        arena.replace_lost_nodes()
        ended = Ended(
            order=order,
            topology=topology,
            previous=previous,
            faults=plan.faults,
            outcome=outcome,
            closing=number == last,
        )
        within.after(ended)
        previous = topology
    if observe_storage is not None:
        observe_storage(len(plans), arena)
    within.end(last)


def run_attempt(
    run: AttemptRun,
    order: AttemptOrder,
    topology: Topology,
    record: Record,
    *,
    closing: bool,
    launch: Launch,
) -> j.AttemptOutcome:
    """Record that the attempt starts, and run it to its end."""
    record(
        j.AttemptStarted(
            attempt=order.attempt, ranks=topology.ranks, intent=order.intent, closing=closing, launch=launch
        )
    )
    return run.run()
