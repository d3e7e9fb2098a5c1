"""The order of a recorded golden run: the same whichever rank was faster, and one that reach allows."""

from __future__ import annotations

import errno

from hypothesis import given
from hypothesis import strategies as st

from chaosckpt.engine.golden.points import in_steady_order
from chaosckpt.engine.wire.reports import Labelled
from chaosckpt.model.census import GoldenRun, Label, Point
from chaosckpt.model.operation import Address, Operation
from chaosckpt.model.topology import Topology

_MADE = "shared:step-2"


def performed(rank: int, op: str, path: str, result: int = 0) -> Operation:
    address = Address(rank, "main", op, path, 0, 0)
    return Operation(address=address, sequence=0, raw=path, result=result)


def shard(rank: int) -> Operation:
    return performed(rank, "open_write", f"{_MADE}/rank-{rank}.pt")


def labelled(*operations: Operation) -> list[Labelled]:
    return [Labelled(operation, order, "save", 2, "persist") for order, operation in enumerate(operations)]


COMMIT = performed(0, "rename", f"{_MADE}/.metadata.tmp")
MAKES = [performed(rank, "mkdir", _MADE) for rank in range(2)]
RUN = GoldenRun(
    topology=Topology((2,)),
    resumed_from=None,
    points=tuple(Point(o.address, Label("persist", 2)) for o in (MAKES[0], MAKES[1], shard(0), shard(1), COMMIT)),
    # Rank 0 commits once rank 1 has written its shard; rank 1 waits for nobody.
    reach=((0, 2), (2, 0), (1, 2), (2, 1), (2, 2)),
)


@given(st.permutations([0, 0, 1, 1]))
def test_the_order_is_the_same_whichever_rank_is_faster(turns: list[int]) -> None:
    """Goal: every race of two ranks, before the one commits, gives one order, and in it the first to make the directory succeeds."""
    rows = {0: [MAKES[0], shard(0)], 1: [MAKES[1], shard(1)]}
    raced: list[Operation] = []
    for rank in turns:
        row = rows[rank].pop(0)
        late = any(other.address.op == "mkdir" for other in raced)
        raced.append(performed(rank, "mkdir", _MADE, -errno.EEXIST) if row.address.op == "mkdir" and late else row)
    found = [row.operation for row in in_steady_order(labelled(*raced, COMMIT), RUN)]
    assert found == [MAKES[1], shard(1), performed(0, "mkdir", _MADE, -errno.EEXIST), shard(0), COMMIT]


def test_what_reach_enforces_comes_first() -> None:
    """Goal: where rank 1 waits for the directory that rank 0 makes, the order has it after that, though it prefers rank 1."""
    points = tuple(Point(o.address, Label("persist", 2)) for o in (MAKES[0], shard(0), shard(1), COMMIT))
    waits = GoldenRun(topology=Topology((2,)), resumed_from=None, points=points, reach=((0, 0), (1, 1), (3, 0), (2, 1)))
    rows = labelled(MAKES[0], shard(1), shard(0), COMMIT)
    assert [row.operation for row in in_steady_order(rows, waits)] == [MAKES[0], shard(1), shard(0), COMMIT]


def test_without_reach_the_recorded_order_stays() -> None:
    """Goal: nothing is claimed that wasn't measured."""
    rows = labelled(MAKES[0], shard(1), shard(0))
    assert in_steady_order(rows, GoldenRun(topology=Topology((2,)), resumed_from=None, points=RUN.points)) == rows
