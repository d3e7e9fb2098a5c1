"""The prediction: which golden run each attempt of a schedule is expected to follow, and so which addresses it will
have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaosckpt.model.census import Census, GoldenRun
from chaosckpt.model.fault import Fault
from chaosckpt.model.golden_index import GoldenIndex
from chaosckpt.model.operation import tier_of
from chaosckpt.model.schedule import AttemptPlan, Schedule
from chaosckpt.model.topology import Topology


@dataclass(frozen=True, eq=False)
class PredictedRun:
    """What an attempt is expected to do. `exact`: the census has this very run; else `golden` is a neighbour or has no
    points."""

    golden: GoldenIndex
    exact: bool
    interrupted: int | None = None


class CensusIndex:
    """The indexes of the golden runs of a census, made once each; what an attempt is predicted to do is looked up here."""

    def __init__(self, census: Census) -> None:
        self.census = census
        self._indexes: dict[tuple[Topology, int | None], GoldenIndex] = {}
        self.main = self._index(census.main)
        self.tiers = tuple(sorted({tier_of(point.address.path) for point in census.main.points}))
        """The storage tiers that the job works on."""

    def _index(self, run: GoldenRun) -> GoldenIndex:
        key = (run.topology, run.resumed_from)
        if key not in self._indexes:
            main = self.census.run(run.topology, None)
            self._indexes[key] = GoldenIndex(run, main if main is not run else None)
        return self._indexes[key]

    def start(self) -> PredictedRun:
        """The first attempt."""
        return PredictedRun(self.main, True)

    def lookup(self, topology: Topology, resumed_from: int | None, interrupted: int | None = None) -> PredictedRun:
        """The golden run for an attempt; where there is none, its nearest neighbour in the same topology, under the
        true step."""
        run = self.census.run(topology, resumed_from)
        if run is not None:
            return PredictedRun(self._index(run), True, interrupted)
        wanted = -1 if resumed_from is None else resumed_from
        others = [run for run in self.census.runs if run.topology == topology]
        if others:
            best = min(others, key=lambda run: _distance(run, wanted))
            near = _renamed(best, resumed_from)
        else:
            near = GoldenRun(topology=topology, resumed_from=resumed_from, points=())
        return PredictedRun(GoldenIndex(near, self.census.run(topology, None)), False, interrupted)

    def following(self, now: PredictedRun, plan: AttemptPlan) -> PredictedRun:
        """The attempt after one that was expected to go like `now` and had the faults of `plan`, in the same
        topology."""
        ending = ending_fault(plan.faults)
        if ending is None:
            return self.lookup(now.golden.topology, now.golden.resumes_from(now.golden.ends))
        after = self._dropped(self._stopped(now, ending), (ending,))
        return PredictedRun(after.golden, False, after.interrupted) if ending.blurs else after

    def _stopped(self, now: PredictedRun, ending: Fault) -> PredictedRun:
        """What follows when `ending` stops the attempt `now`, as far as processes go."""
        counts = now.golden.at_rest(ending.triggers())
        if counts is None:
            return self.lookup(now.golden.topology, now.golden.run.resumed_from)
        step = now.golden.resumes_from(counts)
        i = now.golden.index(ending.triggers()[0].address)
        cut_short = None if i is None else now.golden.points[i].label.step
        interrupted = cut_short if cut_short is not None and cut_short != step else None
        return self.lookup(now.golden.topology, step, interrupted)

    def turned(self, now: PredictedRun, faults: Sequence[Fault]) -> PredictedRun:
        """The same attempt, with the topology and the storage that these faults leave it at its start."""
        topology = now.golden.topology
        for fault in faults:
            topology = fault.topology(topology)
        if topology != now.golden.topology:
            now = self.lookup(topology, now.golden.run.resumed_from, now.interrupted)
        between = [fault for fault in faults if fault.between]
        now = self._dropped(now, between)
        # What recovery makes of damaged files isn't known.
        return PredictedRun(now.golden, False, now.interrupted) if any(fault.blurs for fault in between) else now

    def _dropped(self, now: PredictedRun, faults: Sequence[Fault]) -> PredictedRun:
        """The same attempt after these faults took storage away: what it recovers, and from where, isn't known any
        more."""
        gone = {fault.drops for fault in faults} & set(self.tiers)
        if not gone:
            return now
        if gone == set(self.tiers):
            empty = GoldenRun(topology=now.golden.topology, resumed_from=None, points=())
            return PredictedRun(GoldenIndex(empty), False)
        return PredictedRun(now.golden, False, now.interrupted)

    def attempts(self, schedule: Schedule) -> tuple[PredictedRun, ...]:
        """What every attempt of a schedule is expected to do, the closing one included."""
        result: list[PredictedRun] = []
        now = self.start()
        for plan in (*schedule.attempts, AttemptPlan()):
            now = self.turned(now, plan.faults)
            result.append(now)
            now = self.following(now, plan)
        return tuple(result)


def ending_fault(faults: Sequence[Fault]) -> Fault | None:
    """The fault by which an attempt is expected to end, if any: the last one that ends anything at an operation."""
    return next((fault for fault in reversed(faults) if fault.ends != "nothing" and fault.triggers()), None)


def _distance(run: GoldenRun, wanted: int) -> tuple[int, int]:
    step = -1 if run.resumed_from is None else run.resumed_from
    return abs(step - wanted), step


def _renamed(run: GoldenRun, resumed_from: int | None) -> GoldenRun:
    return GoldenRun(
        topology=run.topology,
        resumed_from=resumed_from,
        points=run.points,
        reach=run.reach,
        commits=run.commits,
        saves=run.saves,
    )
