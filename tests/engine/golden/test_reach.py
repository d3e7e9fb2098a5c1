"""Reach from samples: operations that come or don't as ranks race mislead nobody, though each run numbers them differently."""

from __future__ import annotations

from chaosckpt.engine.golden.reach import ReachSample, reach
from chaosckpt.model.census import GoldenRun, Label, Point
from chaosckpt.model.operation import Address
from chaosckpt.model.topology import Topology

_DIRECTORY = "shared:latest"


def at(rank: int, op: str, nth: int = 0, path: str = _DIRECTORY) -> Address:
    return Address(rank, "main", op, path, 0, nth)


def shard(rank: int, nth: int) -> Address:
    return at(rank, "open_write", nth, f"{_DIRECTORY}/rank-{rank}.pt")


def golden(*addresses: Address) -> GoldenRun:
    points = tuple(Point(address, Label("persist", 2)) for address in addresses)
    return GoldenRun(topology=Topology((2,)), resumed_from=None, points=points)


def tail(*addresses: Address) -> tuple[Address, ...]:
    return addresses


def sample(held: tuple[Address, ...], peer: tuple[Address, ...]) -> ReachSample:
    return ReachSample((held, peer), 0)


SAMPLES = {
    # Rank 0 was stepped, so it came second each time and looked at the directory that rank 1 had made.
    at(0, "mkdir", 0): sample((), tail(at(1, "mkdir", 0))),
    at(0, "stat", 0): sample(tail(at(0, "mkdir", 0)), tail(at(1, "mkdir", 0))),
    shard(0, 0): sample(tail(at(0, "stat", 0)), tail(at(1, "mkdir", 0), shard(1, 0))),
    at(0, "mkdir", 1): sample(tail(shard(0, 0)), tail(shard(1, 0), at(1, "mkdir", 1))),
    at(0, "stat", 1): sample(tail(at(0, "mkdir", 1)), tail(shard(1, 0), at(1, "mkdir", 1))),
    at(1, "mkdir", 0): sample(tail(at(0, "mkdir", 0)), ()),
    shard(1, 0): sample(tail(at(0, "mkdir", 0), shard(0, 0)), tail(at(1, "mkdir", 0))),
    at(1, "mkdir", 1): sample(tail(shard(0, 0), at(0, "mkdir", 1)), tail(shard(1, 0))),
}


def test_a_look_that_comes_only_in_one_run_is_not_taken_for_a_later_one() -> None:
    """Goal: where rank 0 looks at the directory in the second save only, that look has the reach of the second save."""
    run = golden(
        at(0, "mkdir", 0),
        at(1, "mkdir", 0),
        shard(0, 0),
        shard(1, 0),
        at(1, "mkdir", 1),
        at(0, "mkdir", 1),
        at(0, "stat", 0),
    )
    found = dict(zip((point.address for point in run.points), reach(run, SAMPLES), strict=True))
    assert found[at(0, "mkdir", 1)] == (2, 3)
    assert found[at(0, "stat", 0)] == (3, 3)


def test_the_peer_s_look_is_counted_with_what_it_follows() -> None:
    """Goal: rank 1, which looked in this run, is through with its look where it got to the operation before it."""
    run = golden(at(0, "mkdir", 0), at(1, "mkdir", 0), at(1, "stat", 0), shard(0, 0), shard(1, 0), at(0, "mkdir", 1))
    found = dict(zip((point.address for point in run.points), reach(run, SAMPLES), strict=True))
    assert found[at(0, "mkdir", 0)] == (0, 2)
    assert found[at(0, "mkdir", 1)] == (2, 3)
