"""Golden runs: the fault-free attempts from which the census, reach and commit points come."""

from __future__ import annotations

import re
import shutil
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from chaosckpt.commands.random_names import random_parts
from chaosckpt.engine.golden import cache
from chaosckpt.engine.golden.points import Prefixes, find_commits, with_stages
from chaosckpt.engine.golden.reach import reach, single_step, training
from chaosckpt.engine.golden.recovery import find_gaps
from chaosckpt.engine.golden.waiting import Waiting
from chaosckpt.engine.node.rank_process import decode_path
from chaosckpt.engine.runner.arena import Arena, inventory
from chaosckpt.engine.runner.attempt import AttemptRun
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.programs import AuditProgram, TrainingProgram
from chaosckpt.engine.wire.reports import Labelled
from chaosckpt.errors import UsageError
from chaosckpt.model import journal as j
from chaosckpt.model.census import Census, GoldenRun, Label, Point, RecoveryGap, longest_pauses
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.topology import Topology

_PATIENT = Deadlines(golden_seconds=20.0)
_PROBING = Deadlines(golden_seconds=0.5, floor_seconds=3.0)
"""A recovery that stands still on a prefix of the storage has not chosen anything; no verdict rests on how long that is watched."""
_TRIES = 3
Progress = Callable[[str], None]


def measure(
    scenario: Scenario, arena: Arena, *, progress: Progress = lambda text: None, sweeping: bool = False
) -> Census:
    """Measure the census of a scenario on a local arena. With `sweeping`, recovery is run after every operation, too (recovery.py).

    Raises UsageError, with what the job printed, when the job does not finish without any fault.
    """
    return _Golden(scenario, arena, progress, sweeping).census()


class _Golden:
    def __init__(self, scenario: Scenario, arena: Arena, progress: Progress, sweeping: bool) -> None:
        self.scenario = scenario
        self.arena = arena
        self.progress = progress
        self.sweeping = sweeping
        self.snapshots = arena.directory / "snapshots"
        self.left: set[str] = set()
        self.nonces: tuple[str, ...] = ()
        self._paths: set[str] = set()
        """Every path of the golden runs so far, without what is drawn anew in each."""
        self.saves = scenario.workload.save_steps

    def census(self) -> Census:
        """Every golden run: from the start and resumed from each save, in each topology."""
        first, *others = self.scenario.topology.topologies
        self.progress(f"golden run of {first} ranks")
        main = self._run(first, None)
        if first.world_size > 1:
            self.progress("reach of every operation")
            main = self._with_reach(main)
        self.progress("commit points")
        prefixes = Prefixes.of(self, main)
        main = find_commits(prefixes, self.saves, main)
        runs = [with_stages(main)]
        gaps: tuple[RecoveryGap, ...] = ()
        tried = 0
        if self.sweeping and prefixes is not None:
            gaps, tried = find_gaps(prefixes, self.progress)
        self.progress("golden recoveries")
        self._take_snapshots(first)
        self._ask_retained(first)
        for topology in (first, *others):
            if topology != first:
                runs.append(self._like(main, self._run(topology, None)))
            runs += [self._like(main, self._run(topology, step)) for step in self.saves]
        shutil.rmtree(self.snapshots, ignore_errors=True)
        return Census(
            runs=tuple(runs),
            environment=cache.environment(),
            left=tuple(sorted(self.left)),
            prefixes=tried,
            gaps=gaps,
            nonces=self.nonces,
        )

    def attempt(
        self,
        topology: Topology,
        order: AttemptOrder,
        what: str,
        keep: list[list[Labelled]] | None = None,
        must_finish: bool = True,
        deadlines: Deadlines = _PATIENT,
    ) -> tuple[list[j.AnyEvent], float]:
        """One attempt without faults; its events and how long it took. `keep` receives the records, rank by rank."""
        events: list[j.AnyEvent] = []
        started = time.monotonic()
        waiting = Waiting(what, self.progress)
        outcome = AttemptRun(self.arena, order, topology, (), events.append, deadlines, listener=waiting).run()
        seconds = time.monotonic() - started
        finished = sum(isinstance(event, j.Finished) for event in events)
        if must_finish and (outcome != "finished" or finished < topology.world_size):
            raise UsageError(failure(what, outcome, events, waiting.last))
        if keep is not None:
            for node in self.arena.distinct():
                keep.extend(node.records())
        return events, seconds

    def probe(self, topology: Topology, step: int) -> set[int | None]:
        """What recovery chooses on the storage as it is now; empty where it refuses or stands still."""
        order = self.order(topology, step, program=TrainingProgram(recover_only=True))
        events, _ = self.attempt(topology, order, "a probe", must_finish=False, deadlines=_PROBING)
        return {event.chosen for event in events if isinstance(event, j.Recovered)}

    def order(self, topology: Topology, resumed_from: int | None, **more: object) -> AttemptOrder:
        return AttemptOrder(
            attempt=0 if resumed_from is None else 1,
            intent="start" if resumed_from is None else "resume",
            world_size=topology.world_size,
            places=(),
            collective_timeout_seconds=_PATIENT.collective_seconds,
            **more,  # type: ignore[arg-type]
        )

    def _run(self, topology: Topology, resumed_from: int | None) -> GoldenRun:
        """A golden run. One with names that none had before it is made twice; as long as that shows some to be drawn anew, again."""
        run, paths = self._recorded(topology, resumed_from)
        for _ in range(_TRIES):
            if self._paths.issuperset(paths):
                break
            _, others = self._recorded(topology, resumed_from)
            found = drawn_anew(self.arena, [*paths, *self._paths], [*others, *self._paths], self.nonces)
            if found == self.nonces:
                break
            self.progress("golden runs again, because file names differ between runs")
            self.nonces = found
            run, paths = self._recorded(topology, resumed_from)
        self._paths.update(paths)
        self.left.update(path for path, _ in inventory(self.arena))
        return run

    def _recorded(self, topology: Topology, resumed_from: int | None) -> tuple[GoldenRun, list[str]]:
        """One golden run, and its paths without what is known to be drawn anew in each."""
        if resumed_from is None:
            self.arena.reset()
            what = f"the golden run with {topology} ranks"
        else:
            self.restore(self.snapshots / str(resumed_from))
            what = f"the golden recovery from step {resumed_from} with {topology} ranks"
        kept: list[list[Labelled]] = []
        order = self.order(topology, resumed_from, record="operations")
        # A recovery that fails, or chooses wrongly, is for the trials to find: here its operations are wanted.
        _, seconds = self.attempt(
            topology,
            order,
            what,
            kept,
            must_finish=resumed_from is None,
            deadlines=_PATIENT if resumed_from is None else _PROBING,
        )
        run = GoldenRun(
            topology=topology,
            resumed_from=resumed_from,
            points=points(kept),
            saves=tuple(step for step in self.saves if step > (resumed_from or 0)),
            duration_seconds=seconds,
            pauses=longest_pauses([node.pauses() for node in self.arena.distinct()]),
        )
        return run, paths_of(self.arena, kept, self.nonces)

    def _with_reach(self, run: GoldenRun) -> GoldenRun:
        steps = self.scenario.workload.steps
        deadlines = msgspec.structs.replace(_PATIENT, golden_seconds=max(5.0, run.duration_seconds), pauses=run.pauses)
        samples, by_time = single_step(self.arena, self.order(run.topology, None), run.topology, deadlines, steps)
        return msgspec.structs.replace(run, reach=reach(run, samples), training=training(run, samples), by_time=by_time)

    def _take_snapshots(self, topology: Topology) -> None:
        shutil.rmtree(self.snapshots, ignore_errors=True)  # a golden run that failed has left its own
        for step in self.saves:
            self.arena.reset()
            self.attempt(
                topology,
                self.order(topology, None, program=TrainingProgram(stop_after=step)),
                f"the golden run up to step {step}",
            )
            for tier in self.tiers():
                snapshot = self.snapshots / str(step) / tier.name
                if tier.is_dir():
                    shutil.copytree(tier, snapshot, symlinks=True)
                else:
                    snapshot.mkdir(parents=True)  # the target has removed its root

    def _ask_retained(self, topology: Topology) -> None:
        """Audit the storage that the golden run has left. Where the target can't say what it retains, every audit of a trial
        would prove nothing, and nobody would know."""
        what = "listing what the target retains after the golden run"
        order = self.order(topology, self.saves[-1], program=AuditProgram(steps=self.saves))
        events, _ = self.attempt(topology, order, what, must_finish=False)
        if any(isinstance(event, j.Raised) for event in events):
            raise UsageError(failure(what, "failed", events))

    def tiers(self) -> list[Path]:
        """The storage directories of every node of a local arena."""
        numbers = range(len(self.arena.nodes))
        return sorted({Path(path) for number in numbers for path in self.arena.tiers(number).values()})

    def restore(self, snapshot: Path) -> None:
        """Put the storage into the state of a snapshot."""
        self.arena.reset()
        for tier in self.tiers():
            shutil.copytree(snapshot / tier.name, tier, symlinks=True, dirs_exist_ok=True)

    def _like(self, main: GoldenRun, run: GoldenRun) -> GoldenRun:
        """Carry the main run's commit points over: the commit of a save is the same operation on the same path."""
        commits = {}
        for step, index in main.commits.items():
            wanted = main.points[index].address
            for place, point in enumerate(run.points):
                same = (point.address.rank, point.address.op, point.address.path) == (
                    wanted.rank,
                    wanted.op,
                    wanted.path,
                )
                if same and point.label.step == step:
                    commits[step] = place
        return with_stages(msgspec.structs.replace(run, commits=commits))


def paths_of(arena: Arena, kept: Sequence[Sequence[Labelled]], nonces: Sequence[str]) -> list[str]:
    """The paths of recorded operations, without what the target declares, or these expressions know, to be drawn anew in each run."""
    known = [re.compile(pattern) for pattern in (*arena.nodes[0].facts.nonces, *nonces)]
    paths = ((row.operation.raw, row.operation.destination) for rank in kept for row in rank)
    return [decode_path(path, known) for pair in paths for path in pair if path is not None]


def drawn_anew(arena: Arena, one: Sequence[str], two: Sequence[str], nonces: tuple[str, ...]) -> tuple[str, ...]:
    """The expressions with those added by which the paths of two equal runs read alike; the arena's nodes use them from now on."""
    found = (*nonces, *random_parts(one, two, socket.gethostname()))
    if found != nonces:
        for node in arena.distinct():
            node.decode(found)
    return found


def points(kept: Sequence[Sequence[Labelled]]) -> tuple[Point, ...]:
    """The census points of recorded operations, in the order of their effects; those outside any save or recovery left out."""
    rows = sorted((row for rank in kept for row in rank), key=lambda row: row.order)
    found = []
    for row in rows:
        step = row.step if row.phase == "save" else None
        stage = row.stage or "persist"
        found.append(Point(row.operation.address, Label(stage, step), row.operation.length))  # type: ignore[arg-type]
    return tuple(found)


def _status(event: j.RankExited) -> str:
    return f"status {event.exit_code}" if event.signal is None else f"signal {event.signal}"


def failure(what: str, outcome: str, events: Sequence[j.AnyEvent], waited: str = "") -> str:
    """The sentence for a job that didn't finish, though nothing struck it. `waited`: how it stood still, if it did."""
    if outcome == "hung" and waited:
        return f"{what} hung: {waited}"
    raised = [event for event in events if isinstance(event, j.Raised)]
    if raised:
        first = raised[0]
        return f"{what} failed in {first.where} on rank {first.rank}: {first.error_type}: {first.message}"
    own = [event for event in events if isinstance(event, j.RankExited) and event.by == "self"]
    ends = ", ".join(f"rank {event.rank} exited with {_status(event)}" for event in own)
    tails = [event.stderr_tail for event in events if isinstance(event, j.RankExited) and event.stderr_tail]
    said = f"printed: {tails[0].strip()[-600:]}" if tails else "nothing was printed"
    return f"{what} failed: {'; '.join(filter(None, [ends, said]))}"
