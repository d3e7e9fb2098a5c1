"""Reach: how far every other rank gets while one rank is held before one of its operations.

Ranks wait for one another: a collective returns on no rank before every rank has entered it. So a rank that is held
before an operation holds its peers, too, some operations further on or further back. A cut (a set of operations, one
for each rank, at which all are to die together) can only be reached where each rank gets to its operation while the
others stand at theirs. Drawn without that knowledge, most cuts would never come about, and their trials would show
nothing.

**How it is measured.** For each rank the job runs once more from the start, fault-free, with that rank stepped: its
gate holds each of its operations, one after another. When all ranks are at rest, so that nobody can go further by
himself, the last operations of each rank are noted, and the held one is let go. The same is told of the rank's own
training thread, which goes on while a saver of the rank is held.

**What is guaranteed.** A sample is exact where rest is (chaosckpt/engine/runner/quiescence.py): no clock decides when the peers
have come as far as they can. Where rest could only be told by time, the census says so. What is noted are addresses, not
counts. The stepped run and the golden run interleave their ranks differently, and may differ in operations that come or
don't as ranks race; an address is found in the golden run whatever the order there. Reach is what is possible, at the
latest: a peer may be anywhere before it.

**What is not.** A job that doesn't end well when it is stepped (it has a timeout of its own, say) has no reach;
campaigns then draw cuts without it, and miss more often. Of resumed runs, and of other topologies, reach is not
measured: it would cost as many runs again.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.attempt import AttemptRun, Heard, Listener
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.quiescence import Quiescence
from chaosckpt.engine.runner.ranks import Ranks
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.reports import Stepping
from chaosckpt.errors import UsageError
from chaosckpt.model.census import GoldenRun, Point, raced_paths
from chaosckpt.model.operation import Address, Operation
from chaosckpt.model.topology import Topology

QUIESCENCE_BY_TIME = (
    "some thread is never at rest, so whether all else had come as far as it can when a fault struck was told by time: the same "
    "schedule may now and then find the ranks elsewhere"
)
"""What is remarked of such a census."""


class ReachSample(msgspec.Struct, frozen=True):
    """What was seen while one operation was held before it happened, with all at rest.

    `latest` are the last few operations of each rank, oldest first; `step` is the last training step that the held
    rank's training thread came to, 0 where it came to none.
    """

    latest: tuple[tuple[Address, ...], ...]
    step: int


Samples = dict[Address, ReachSample]


class _Steps(Listener):
    """Notes how far each rank has come at every operation of the one that is held."""

    def __init__(self, world_size: int) -> None:
        self.samples: Samples = {}
        self.by_time = False
        self.why_not_quiescent = ""
        self._world_size = world_size
        self._step = 0

    def heard(self, message: Heard) -> None:
        """How far the training thread has come."""
        if isinstance(message, Stepping):
            self._step = message.step

    def stepped(self, held: Sequence[Operation], ranks: Ranks, rest: Quiescence) -> None:
        self.by_time = self.by_time or rest != "exact"
        latest = {rank: tuple(found) for node in ranks.nodes for rank, found in node.latest().items()}
        sample = ReachSample(tuple(latest[rank] for rank in range(self._world_size)), self._step)
        self.samples.update(dict.fromkeys((operation.address for operation in held), sample))

    def not_quiescent(self, why: str) -> None:
        """It is told once the attempt has ended."""
        self.why_not_quiescent = why


def single_step(
    arena: Arena, order: AttemptOrder, topology: Topology, deadlines: Deadlines, steps: int = 0
) -> tuple[Samples, bool]:
    """How far the peers get at every operation of every rank, and its own training, where its steps are known; whether rest was
    told by time anywhere.

    `order` is the golden attempt's. The storage is emptied before each run, so the attempt must be one from the start.
    Empty where the job doesn't end well when it is stepped. Raises UsageError where it never comes to rest.
    """
    table: Samples = {}
    by_time = False
    for rank in range(topology.world_size):
        arena.reset()
        stepped = msgspec.structs.replace(
            order,
            step_rank=rank,
            hold_steps={rank: tuple(range(1, steps + 1))},
            record="nothing",
            collective_timeout_seconds=max(deadlines.rest_seconds * 16, deadlines.watch_seconds * 400),
        )
        found = _Steps(topology.world_size)
        run = AttemptRun(arena, stepped, topology, (), lambda event: None, deadlines, listener=found)
        outcome = run.run()
        if found.why_not_quiescent:
            raise UsageError(never_quiescent(found.why_not_quiescent))
        if outcome != "finished":
            # A job that fails when one rank is slow is the campaign's to find, which can do with less than reach.
            return {}, False
        table.update(found.samples)
        by_time = by_time or found.by_time
    return table, by_time


class _HeldOnce(Listener):
    """Notes how the attempt came to rest with an operation held, and ends it then, unless it is to go on."""

    def __init__(self, *, go_on: bool) -> None:
        self._go_on = go_on
        self.rest: Quiescence | None = None
        self.why_not_quiescent = ""

    def stepped(self, held: Sequence[Operation], ranks: Ranks, rest: Quiescence) -> None:
        self.rest = rest
        if not self._go_on:
            ranks.kill(None, "harness")

    def not_quiescent(self, why: str) -> None:
        """It is told once the attempt has ended."""
        self.why_not_quiescent = why


def quiescence_when_held(
    arena: Arena,
    order: AttemptOrder,
    topology: Topology,
    deadlines: Deadlines,
    address: Address,
    *,
    go_on: bool = False,
) -> Quiescence | None:
    """How rest is told of the job, started on empty storage and held before this operation; None where it doesn't come to that.

    With `go_on` it isn't ended there, so that what it does to storage that is never emptied is done in full.
    Raises UsageError where it never comes to rest.
    """
    arena.reset()
    found = _HeldOnce(go_on=go_on)
    order = msgspec.structs.replace(order, hold_at=(address,))
    AttemptRun(arena, order, topology, (), lambda event: None, deadlines, listener=found).run()
    if found.why_not_quiescent:
        raise UsageError(never_quiescent(found.why_not_quiescent))
    return found.rest


def never_quiescent(why: str) -> str:
    """The sentence for a job that doesn't come to rest while one of its operations is held."""
    return (
        f"faults can't be placed: while one operation was held, {why}. Turn off that thread while you test, or let it leave the "
        "checkpoints' storage and its connections alone"
    )


def reach(run: GoldenRun, samples: Samples) -> tuple[tuple[int, ...], ...]:
    """The reach of every point of a run, as counts of the run's own operations of each rank. Empty where the samples tell too little.

    An operation that comes or doesn't as ranks race may lack a sample: it has its rank's last one.
    """
    raced = raced_paths(run.points)
    of_rank = [run.of_rank(rank) for rank in range(run.topology.world_size)]
    found: list[tuple[int, ...]] = []
    last: dict[int, tuple[int, ...]] = {}
    done = [0] * run.topology.world_size
    places = [_steady_places(points, raced) for points in of_rank]
    for point in run.points:
        rank = point.address.rank
        sample = None if _raced(point.address, raced) else samples.get(point.address)
        if sample is not None:
            last[rank] = tuple(
                next((place[at] for at in reversed(tail) if at in place), 0)
                for place, tail in zip(places, sample.latest, strict=True)
            )
        if rank not in last:
            return ()
        counts = list(last[rank])
        counts[rank] = done[rank]
        found.append(tuple(counts))
        done[rank] += 1
    return tuple(found)


def _raced(address: Address, raced: frozenset[str]) -> bool:
    """Whether an operation comes or doesn't as ranks race: it is numbered differently then, and another run's sample isn't its own."""
    return address.op == "stat" and address.path in raced


def _steady_places(points: Sequence[Point], raced: frozenset[str]) -> dict[Address, int]:
    """How many operations of a rank are done after each steady one; raced ones follow a steady one at once, and are counted with it."""
    found: dict[Address, int] = {}
    steady: Address | None = None
    for count, point in enumerate(points, 1):
        if not _raced(point.address, raced):
            steady = point.address
        if steady is not None:
            found[steady] = count
    return found


def training(run: GoldenRun, samples: Samples) -> tuple[int, ...]:
    """The step that the training thread of each point's rank comes to while the point is held; 0 where that isn't known."""
    return tuple(samples[point.address].step if point.address in samples else 0 for point in run.points)
