"""The interruptions of a drill: a later save is killed at several exact points, under the gate, and the job goes on with the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from chaosckpt.engine.arena import Arena
from chaosckpt.engine.attempt import AttemptRun
from chaosckpt.engine.deadlines import Deadlines
from chaosckpt.engine.golden import points as points_of
from chaosckpt.engine.messages import AttemptOrder, Labelled
from chaosckpt.engine.reference import References
from chaosckpt.engine.trial import run_trial
from chaosckpt.faults.cut import Cut
from chaosckpt.model import journal as j
from chaosckpt.model.census import Point, unsteady
from chaosckpt.model.fault import Trigger
from chaosckpt.model.operation import MARK, WRITING
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.schedule import AttemptPlan, Schedule

_FIRST = Deadlines(golden_seconds=5.0, floor_seconds=10.0, factor=3.0)


_CHANGING = (WRITING - {"close"}) | {MARK}
"""What is worth a kill: closing a file changes nothing on storage."""


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """A fault-free run: the operations of the later save at which a job can be killed, in their order, and how long it took."""

    points: tuple[Point, ...]
    outcome: str
    deadlines: Deadlines


def rehearse(arena: Arena, scenario: Scenario, later_step: int) -> Rehearsal:
    """Run the job once, on emptied storage, and note what the save of `later_step` does."""
    topology = scenario.topology.topologies[0]
    arena.reset()
    order = AttemptOrder(
        attempt=0,
        intent="start",
        world_size=topology.world_size,
        places=(),
        record="operations",
        collective_timeout_seconds=_FIRST.collective_seconds,
    )
    run = _Timed(arena, order, topology, (), lambda event: None, _FIRST)
    outcome = run.run()
    kept: list[list[Labelled]] = []
    for node in arena.distinct():
        kept.extend(msgspec.convert(node.call("records"), list[list[Labelled]]))
    found = points_of(kept)
    skipped = unsteady(found)
    chosen = tuple(
        point
        for index, point in enumerate(found)
        if point.label.step == later_step and point.address.op in _CHANGING and index not in skipped
    )
    return Rehearsal(points=chosen, outcome=outcome, deadlines=Deadlines(golden_seconds=run.seconds, factor=3.0))


class _Timed(AttemptRun):
    """An attempt that tells how long it took, for deadlines only."""

    @property
    def seconds(self) -> float:
        return max(0.5, self._last_progress - self._started)


def cuts(points: Sequence[Point], count: int) -> tuple[Cut, ...]:
    """Whole-job kills at about `count` of these points: before the first, after the last, in the middle of the largest write, and
    spread evenly in between. Fewer where there are fewer points."""
    if not points or count < 1:
        return ()
    largest = max(range(len(points)), key=lambda i: (points[i].address.op == "write", points[i].length or 0, -i))
    triggers = [Trigger(points[0].address, "before")]
    if count > 1:
        triggers.append(Trigger(points[-1].address, "before" if points[-1].address.op == MARK else "after"))
    length = points[largest].length or 0
    if count > 2 and points[largest].address.op == "write" and length > 1:
        triggers.append(Trigger(points[largest].address, "torn", length // 2))
    left = max(0, count - len(triggers))
    between = [number * (len(points) - 1) // (left + 1) for number in range(1, left + 1)]
    triggers += [Trigger(points[index].address, "before") for index in between]
    place = {point.address: index for index, point in enumerate(points)}
    ordered = sorted(
        dict.fromkeys(triggers), key=lambda t: (place[t.address], ("before", "torn", "after").index(t.when))
    )
    return tuple(Cut((trigger,)) for trigger in ordered)


def interrupt(
    arena: Arena,
    scenario: Scenario,
    faults: Sequence[Cut],
    references: References,
    deadlines: Deadlines,
    say: Callable[[str], None],
) -> list[j.Journal]:
    """One trial for each cut: the job is killed there, launched again, and ends. Raises HarnessError for trouble of the harness."""
    journals = []
    for number, fault in enumerate(faults, start=1):
        say(f"interrupting a save, {number} of {len(faults)}: {fault.describe()}")
        journals.append(
            run_trial(
                scenario,
                Schedule((AttemptPlan((fault,)),)),
                arena,
                trial=f"drill of {scenario.name}, interruption {number}",
                deadlines=deadlines,
                references=references,
            )
        )
    return journals
