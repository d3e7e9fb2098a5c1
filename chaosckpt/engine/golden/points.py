"""Commit points: the first operation of a golden run after which the real recovery chooses a save.

Recovery is run on prefixes of the run: its storage as it was after an operation, replayed from a trace that keeps its data.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.reports import Labelled
from chaosckpt.model import journal as j
from chaosckpt.model.census import GoldenRun, Label, Point
from chaosckpt.model.operation import WRITING, Address, Operation
from chaosckpt.model.topology import Topology

LARGEST_TRACE_BYTES = 256 << 20
"""Above this the trace isn't kept with its data."""


class Prober(Protocol):
    """What prefixes need of the golden runs."""

    arena: Arena
    saves: tuple[int, ...]

    def order(self, topology: Topology, resumed_from: int | None, **more: object) -> AttemptOrder: ...

    def attempt(
        self, topology: Topology, order: AttemptOrder, what: str, keep: list[list[Labelled]] | None = None
    ) -> tuple[list[j.AnyEvent], float]: ...

    def probe(self, topology: Topology, step: int) -> set[int | None]: ...


class Prefixes:
    """A golden run once more, recorded with its data. `rows` stand in an order that doesn't depend on how fast each rank was."""

    def __init__(self, prober: Prober, run: GoldenRun) -> None:
        topology = run.topology
        self._prober = prober
        self._topology = topology
        prober.arena.reset()
        kept: list[list[Labelled]] = []
        order = prober.order(topology, None, record="data")
        prober.attempt(topology, order, "the golden run with its data", kept)
        self.saves = prober.saves
        effects = sorted((row for rank in kept for row in rank), key=lambda row: row.order)
        self.rows = in_steady_order(effects, run, self._where)
        self._trace = [_of_node(row.operation, topology) for row in self.rows]

    @classmethod
    def of(cls, prober: Prober, run: GoldenRun) -> Prefixes | None:
        """The prefixes of this golden run; None where its data is too much to be kept."""
        if sum(point.length or 0 for point in run.points if not point.reads) > LARGEST_TRACE_BYTES:
            return None
        return cls(prober, run)

    def places_of(self, points: Sequence[Point]) -> dict[int, int]:
        """Where each point of the census stands in this trace: the order between ranks may differ from run to run."""
        where = {row.operation.address: place for place, row in enumerate(self.rows)}
        return {index: where[point.address] for index, point in enumerate(points) if point.address in where}

    def chosen(self, place: int, step: int) -> set[int | None]:
        """What recovery, run on the storage as it was after the operation at this place, chooses; empty where it refuses.

        `step` is the one that it is told was saved before.
        """
        from chaosckpt.gate.replay import replay

        self._prober.arena.reset()
        replay(self._trace[: place + 1], self._roots())
        return self._prober.probe(self._topology, step)

    def chooses(self, step: int, place: int) -> bool:
        """Whether all ranks choose this very step there."""
        return self.chosen(place, step) == {step}

    def _where(self, operation: Operation) -> str:
        """The path on this machine: the nodes share some tiers, and have others of their own."""
        tier, colon, relative = _of_node(operation, self._topology).raw.partition(":")
        return f"{self._roots()[tier]}/{relative}" if colon and tier in self._roots() else operation.raw

    def _roots(self) -> dict[str, Path]:
        tiers = self._prober.arena.tiers
        return {
            f"{tier}@{node}": Path(path)
            for node in range(len(self._topology.ranks))
            for tier, path in tiers(node).items()
        }


def in_steady_order(
    rows: Sequence[Labelled], run: GoldenRun, where: Callable[[Operation], str] = lambda operation: operation.raw
) -> list[Labelled]:
    """The rows in an order that the reach of `run` allows, the same one whichever rank happened to be faster.

    `rows` stand in the order of their effects, and the order within a rank stays. An operation comes after those of other ranks
    that hold its rank up; among those that may come next it goes save by save, in each with rank 0 last, since that mostly
    commits. Without reach the order is left as it is. `where` tells whether two operations mean the same path.
    """
    after = _enforced(run)
    if not after:
        return list(rows)
    waiting: dict[int, deque[tuple[int, Labelled]]] = {}
    for row in rows:
        own = waiting.setdefault(row.operation.address.rank, deque())
        before = own[-1][0] if own else -1
        own.append((max(before, -1 if row.step is None else row.step), row))
    missing = Counter(row.operation.address for row in rows)  # of a large write there are several
    ordered: list[Labelled] = []
    while any(waiting.values()):
        heads = sorted((own[0][0], rank == 0, -rank, rank) for rank, own in waiting.items() if own)
        ready = [head for head in heads if not any(missing[a] for a in after.get(_first(waiting[head[-1]]), ()))]
        # A race that came out differently in the two runs may leave none: then the order is nobody's promise.
        _, row = waiting[(ready or heads)[0][-1]].popleft()
        missing[row.operation.address] -= 1
        ordered.append(row)
    return _settled(ordered, {row.operation.address: place for place, row in enumerate(rows)}, where)


def _first(own: deque[tuple[int, Labelled]]) -> Address:
    return own[0][1].operation.address


def _enforced(run: GoldenRun) -> dict[Address, set[Address]]:
    """For each writing operation those of other ranks without which it can't happen: while one is held, its rank stops before it.

    Reading operations come and don't as ranks race, and are numbered differently then: the next writing one waits for the last one.
    """
    if len(run.reach) != len(run.points):
        return {}
    of_rank = {rank: [point.address for point in run.of_rank(rank)] for rank in range(run.topology.world_size)}
    last: dict[int, Address] = {}
    found: dict[Address, set[Address]] = {}
    for point, counts in zip(run.points, run.reach, strict=True):
        held = point.address.rank
        if not point.reads:
            last[held] = point.address
        for rank, count in enumerate(counts):
            waits = next((address for address in of_rank[rank][count:] if address.op in WRITING), None)
            if rank != held and held in last and waits is not None:
                found.setdefault(waits, set()).add(last[held])
    return found


def _settled(rows: list[Labelled], recorded: dict[Address, int], where: Callable[[Operation], str]) -> list[Labelled]:
    """Let the first of several ranks that make or remove one name succeed, and not the one that did in the recorded run."""
    winners: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        if row.operation.address.op in ("mkdir", "rmdir", "unlink") and row.operation.result == 0:
            winners.setdefault((row.operation.address.op, where(row.operation)), []).append(place)
    for place, row in enumerate(rows):
        lost = row.operation
        if lost.result is None or lost.result >= 0:
            continue
        rivals = winners.get((lost.address.op, where(lost)), [])
        before = (i for i in rivals if i > place and recorded[rows[i].operation.address] < recorded[lost.address])
        won = next(before, None)
        if won is not None:
            rows[place] = _with_result(row, rows[won].operation.result)
            rows[won] = _with_result(rows[won], lost.result)
            rivals[rivals.index(won)] = place
    return rows


def _with_result(row: Labelled, result: int | None) -> Labelled:
    return msgspec.structs.replace(row, operation=msgspec.structs.replace(row.operation, result=result))


def _of_node(operation: Operation, topology: Topology) -> Operation:
    """The operation with the tiers named after its rank's node, since each node has a `local` of its own."""
    node = topology.node_of(operation.address.rank)

    def placed(path: str) -> str:
        tier, colon, relative = path.partition(":")
        return f"{tier}@{node}:{relative}" if colon and not path.startswith("/") else path

    destination = None if operation.destination is None else placed(operation.destination)
    return msgspec.structs.replace(operation, raw=placed(operation.raw), destination=destination)


def find_commits(prefixes: Prefixes | None, saves: Sequence[int], run: GoldenRun) -> GoldenRun:
    """Find the commit point of each save, by running recovery on prefixes of the trace; the run with `commits` filled in.

    Without prefixes a save counts as committed at its last operation.
    """
    if prefixes is None:
        ends = {step: _last_of(run.points, step) for step in saves}
        return msgspec.structs.replace(run, commits={step: end for step, end in ends.items() if end is not None})
    places = prefixes.places_of(run.points)
    commits = {}
    from_end: int | None = None
    for step in saves:
        window = [index for index, point in enumerate(run.points) if point.label.step == step and index in places]
        window.sort(key=places.__getitem__)
        # Saves end alike, so the last one's place is tried first: two probes instead of six.
        guess = None if from_end is None else len(window) - from_end
        found = _search(prefixes, step, places, window, guess)
        if found is not None:
            commits[step] = window[found]
            from_end = len(window) - found
    return msgspec.structs.replace(run, commits=commits)


def _last_of(points: Sequence[Point], step: int) -> int | None:
    return max((index for index, point in enumerate(points) if point.label.step == step), default=None)


def _search(probe: Prefixes, step: int, places: dict[int, int], window: list[int], guess: int | None) -> int | None:
    """Where in `window` the operation stands after which recovery begins to choose `step`; None when not even the last does it."""
    low, high = 0, len(window) - 1
    if guess is not None and 0 < guess <= high:
        if probe.chooses(step, places[window[guess]]):
            if not probe.chooses(step, places[window[guess - 1]]):
                return guess
            high = guess - 1
        else:
            low = guess + 1
    if low > high or not probe.chooses(step, places[window[high]]):
        return None
    while low < high:
        middle = (low + high) // 2
        if probe.chooses(step, places[window[middle]]):
            high = middle
        else:
            low = middle + 1
    return low


def with_stages(run: GoldenRun) -> GoldenRun:
    """Name the commit's own operation `commit`, and what a save still does after it (unless the target says otherwise) `retire`."""
    named = list(run.points)
    for step, commit in run.commits.items():
        for index, point in enumerate(named):
            if point.label.step != step or point.label.stage not in ("persist", "commit"):
                continue
            if index == commit:
                named[index] = msgspec.structs.replace(point, label=Label("commit", step))
            elif index > commit and point.address.rank == named[commit].address.rank:
                named[index] = msgspec.structs.replace(point, label=Label("retire", step))
    return msgspec.structs.replace(run, points=tuple(named))
