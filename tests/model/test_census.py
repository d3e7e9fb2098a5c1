"""The census: its fingerprint, the order of its points, and the operations that races decide about."""

from __future__ import annotations

from chaosckpt.model.census import Census, GoldenRun, Label, Point, RecoveryGap, unsteady
from chaosckpt.model.operation import Address
from chaosckpt.model.topology import Topology

SAVE = Label("persist", 2)


def point(rank: int, op: str, path: str = "shared:latest", nth: int = 0, label: Label = SAVE) -> Point:
    return Point(Address(rank, "main", op, path, 0, nth), label)


def run(*points: Point, **fields) -> GoldenRun:
    return GoldenRun(topology=Topology((1, 1)), resumed_from=None, points=points, **fields)


def test_the_order_within_a_rank_stays():
    """Between ranks it is save by save, the committing rank last; reach and commit points go along."""
    start = point(0, "list", "shared:.", label=Label("discover"))
    mine, theirs = point(0, "write", "shared:0"), point(1, "write", "shared:1")
    commit = point(0, "rename", "shared:0", label=Label("commit", 2))
    found = run(start, mine, theirs, commit, reach=((0, 0), (1, 1), (2, 0), (2, 1)), commits={2: 3}).ordered()
    assert found.points == (start, theirs, mine, commit)
    assert found.reach == ((0, 0), (2, 0), (1, 1), (2, 1))
    assert found.commits == {2: 3}
    assert found.ordered() == found


def test_an_operation_of_an_older_save_stays_where_its_rank_did_it():
    """Retention of step 2 happens while step 4 is saved; it doesn't move before it."""
    later, old = point(0, "write", label=Label("persist", 4)), point(0, "unlink", label=Label("retire", 2))
    assert run(later, old).ordered().points == (later, old)


def test_looks_at_a_directory_that_several_ranks_make_are_unsteady():
    """Whoever is late is told that it exists, and looks; a directory of one rank, and looks before, are steady."""
    points = (
        point(0, "stat"),
        point(0, "mkdir"),
        point(1, "mkdir"),
        point(1, "stat"),
        point(0, "mkdir", "shared:own"),
        point(0, "stat", "shared:own"),
    )
    assert unsteady(points) == {3}


def test_two_censuses_of_one_job_have_one_fingerprint():
    """Neither the order between ranks nor who came late with its mkdir shows in it; another operation does."""
    mkdirs = point(0, "mkdir"), point(1, "mkdir")
    first = Census(runs=(run(*mkdirs, point(1, "stat")),))
    second = Census(runs=(run(*reversed(mkdirs), point(0, "stat")),))
    third = Census(runs=(run(*mkdirs, point(1, "fsync")),))
    assert first.fingerprint == second.fingerprint != third.fingerprint


def test_another_commit_point_is_another_fingerprint():
    """What recovery chooses after which operation decides what is drawn, so it belongs to the census's identity."""
    points = point(0, "write"), point(0, "rename")
    prints = {Census(runs=(run(*points, commits={2: i}),)).fingerprint for i in (0, 1)}
    assert len(prints) == 2


def test_a_gap_is_told_as_a_person_would():
    """The operation after which too little was left, and what was left."""
    address = Address(1, "main", "open_write", "shared:rank-1.pt", 2, 0)
    said = "after rank 1 opened rank-1.pt for writing, in its second version: step 2 was gone and "
    assert str(RecoveryGap(address, 2)) == said + "nothing had replaced it"
    assert str(RecoveryGap(address, 2, 1)) == said + "only step 1 was left"
