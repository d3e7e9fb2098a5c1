"""The interruptions of a drill: a later save is killed at several exact points, under the gate, and the job goes on with the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from chaosckpt.engine.golden.census import drawn_anew, paths_of
from chaosckpt.engine.golden.census import points as points_of
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.attempt import AttemptRun
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.trial import run_trial
from chaosckpt.engine.subjects.target import TargetSubject
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.reports import Labelled
from chaosckpt.faults.cut import Cut
from chaosckpt.model import journal as j
from chaosckpt.model.census import Point, unsteady
from chaosckpt.model.fault import Trigger
from chaosckpt.model.operation import MARK, WRITING, When
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.model.topology import Topology

_FIRST = Deadlines(golden_seconds=5.0, floor_seconds=10.0, factor=3.0)


_CHANGING = (WRITING - {"close"}) | {MARK}
"""What is worth a kill: closing a file changes nothing on storage."""


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """A fault-free run: the operations of the later save at which a job can be killed, in their order, and how long it took."""

    points: tuple[Point, ...]
    outcome: str
    deadlines: Deadlines


def rehearse(arena: Arena, scenario: Scenario, later_step: int) -> Rehearsal:
    """Run the job twice, on emptied storage, and note what the save of `later_step` does; again where file names are drawn anew."""
    topology = scenario.topology.topologies[0]
    nonces: tuple[str, ...] = ()
    while True:
        one, two = (_recorded(arena, topology) for _ in range(2))
        paths, others = (paths_of(arena, run[-1], nonces) for run in (one, two))
        known, nonces = nonces, drawn_anew(arena, paths, others, nonces)
        if known or not nonces:
            break
    run, outcome, kept = two
    found = points_of(kept)
    skipped = unsteady(found)
    chosen = tuple(
        point
        for index, point in enumerate(found)
        if point.label.step == later_step and point.address.op in _CHANGING and index not in skipped
    )
    return Rehearsal(
        points=chosen, outcome=outcome, deadlines=Deadlines(golden_seconds=max(0.5, run.seconds), factor=3.0)
    )


def _recorded(arena: Arena, topology: Topology) -> tuple[AttemptRun, str, list[list[Labelled]]]:
    """One run without faults from the start, how it ended, and its operations."""
    arena.reset()
    order = AttemptOrder(
        attempt=0,
        intent="start",
        world_size=topology.world_size,
        places=(),
        record="operations",
        collective_timeout_seconds=_FIRST.collective_seconds,
    )
    run = AttemptRun(arena, order, topology, (), lambda event: None, _FIRST)
    outcome = run.run()
    kept: list[list[Labelled]] = []
    for node in arena.distinct():
        kept.extend(node.records())
    return run, outcome, kept


def cuts(points: Sequence[Point], count: int) -> tuple[Cut, ...]:
    """Whole-job kills at about `count` of these points, in their order; fewer where there are fewer points.

    Before the first, after and before the last (which commits, or nearly), in the middle of the largest write, and then spread evenly.
    """
    if not points:
        return ()
    last = len(points) - 1
    largest = max(range(len(points)), key=lambda i: (points[i].address.op == "write", points[i].length or 0, -i))
    length = points[largest].length or 0
    wanted: list[tuple[int, When, int]] = [(0, "before", 0)]
    if points[last].address.op != MARK:  # a report has no after: what comes next is the next report
        wanted.append((last, "after", 0))
    wanted.append((last, "before", 0))
    if points[largest].address.op == "write" and length > 1:
        wanted.append((largest, "torn", length // 2))
    wanted = list(dict.fromkeys(wanted))[:count]
    left = count - len(wanted)
    wanted += [(number * last // (left + 1), "before", 0) for number in range(1, left + 1)]
    order: tuple[When, ...] = ("before", "torn", "after")
    chosen = sorted(dict.fromkeys(wanted), key=lambda one: (one[0], order.index(one[1])))
    return tuple(Cut((Trigger(points[index].address, when, torn),)) for index, when, torn in chosen)


def interrupt(
    arena: Arena,
    subject: TargetSubject,
    faults: Sequence[Cut],
    deadlines: Deadlines,
    progress: Callable[[str], None],
) -> list[j.Journal]:
    """One trial for each cut: the job is killed there, launched again, and ends. Raises HarnessError for trouble of the harness."""
    journals = []
    for number, fault in enumerate(faults, start=1):
        progress(f"interrupting a save, {number} of {len(faults)}: {fault.describe()}")
        journals.append(
            run_trial(
                subject,
                Schedule((AttemptPlan((fault,)),)),
                arena,
                trial=f"drill, interruption {number}",
                deadlines=deadlines,
            )
        )
    return journals
