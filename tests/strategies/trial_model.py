"""A model of the trial runner: which faults of a schedule land on the modelled dcp job, whatever the ranks' speeds."""

from __future__ import annotations

import random

from chaosckpt.model.census import Point
from chaosckpt.model.fault import Errno, Fault, Memory, Short, Trigger
from chaosckpt.model.operation import Operation
from chaosckpt.model.schedule import Schedule
from chaosckpt.model.topology import Topology
from tests.strategies.dcp_model import MAIN, Walk, programs


class Attempt:
    """One attempt: `missed` are the indices of faults that didn't land, `committed` the steps whose rename was done."""

    def __init__(self, topology: Topology, resumed_from: int | None, faults: tuple[Fault, ...], seed: int) -> None:
        self.topology = topology
        self.walk = Walk(programs(topology, resumed_from))
        self.faults = faults
        self.pending: dict[int, set[Trigger]] = {
            i: set(fault.holds()) for i, fault in enumerate(faults) if fault.holds()
        }
        self.memories = {(i, node): Memory() for i in range(len(faults)) for node in range(len(topology.ranks))}
        self.held: dict[int, tuple[int, Trigger]] = {}
        self.landed: set[int] = {i for i, fault in enumerate(faults) if fault.between}
        self.committed: set[int] = set()
        self._random = random.Random(seed)
        self._open = False

    def run(self) -> None:
        while not self._open:
            ready = [rank for rank in self.walk.ready() if rank not in self.held]
            if ready:
                self._step(self._random.choice(ready))
            elif not self._land():
                break
            elif self._random.random() < 0.5:
                self._land()

    def _trigger(self, point: Point) -> tuple[int, Trigger] | None:
        for i, triggers in self.pending.items():
            for trigger in triggers:
                if trigger.address == point.address:
                    return i, trigger
        return None

    def _step(self, rank: int) -> None:
        point = self.walk.next_point(rank)
        assert point is not None
        if (found := self._trigger(point)) is not None:
            self.pending[found[0]].discard(found[1])
            self.held[rank] = found
            if found[1].when == "after":
                self._perform(rank, point)
                self.walk.dead.add(rank)
            if not self.pending[found[0]] and self.faults[found[0]].ends == "nothing":
                self._release(found[0])
            return
        if self._fails(point):
            self.walk.dead.add(rank)
        else:
            self._perform(rank, point)

    def _fails(self, point: Point) -> bool:
        """Let the faults decide; what a short write left over is written by further calls."""
        node, length = self.topology.node_of(point.address.rank), point.length
        while True:
            operation = Operation(address=point.address, sequence=0, raw=point.address.path, length=length)
            for i, fault in enumerate(self.faults):
                decision = fault.decide(operation, self.memories[i, node])
                if decision is not None:
                    self.landed.add(i)
                if isinstance(decision, Errno):
                    return True
                if isinstance(decision, Short):
                    assert length is not None
                    assert 0 < decision.length < length
                    length -= decision.length
                    break
            else:
                return False

    def _perform(self, rank: int, point: Point) -> None:
        self.walk.perform(rank)
        if point.address.op == "rename" and point.label.step is not None:
            self.committed.add(point.label.step)

    def _land(self) -> bool:
        """All are at rest: strike with the first fault whose triggers are held."""
        for i, triggers in self.pending.items():
            fault = self.faults[i]
            if triggers or i in self.landed or fault.ends == "nothing":
                continue
            self.landed.add(i)
            self._open = True
            if fault.lingers and self._random.random() < 0.5:
                self._release(i)
            return True
        return False

    def _release(self, fault: int) -> None:
        self.landed.add(fault)
        for rank in [rank for rank, (i, _) in self.held.items() if i == fault]:
            self.walk.dead.discard(rank)
            point = self.walk.next_point(rank)
            _, trigger = self.held.pop(rank)
            if point is not None and trigger.when != "after":
                self._perform(rank, point)

    @property
    def missed(self) -> list[Fault]:
        """Those that didn't land, but for those behind an error that this job, which survives none, has ended by."""
        errors = [i for i in self.landed if self.faults[i].ends == "perhaps"]
        until = min(errors, default=len(self.faults))
        return [fault for i, fault in enumerate(self.faults) if i not in self.landed and i < until]


def missed(schedule: Schedule, seed: int = 0) -> list[Fault]:
    """The faults of a schedule that don't land, when ranks go on at speeds that depend on `seed`."""
    topology, committed, found = MAIN, set[int](), list[Fault]()
    for number, plan in enumerate(schedule.attempts):
        for fault in plan.faults:
            topology = fault.topology(topology)
            if fault.drops == "shared" and not committed:
                found.append(fault)
            elif fault.drops == "shared":
                committed.clear()
        attempt = Attempt(topology, max(committed, default=None), plan.faults, seed + number)
        attempt.run()
        committed |= attempt.committed
        found += attempt.missed
    return found
