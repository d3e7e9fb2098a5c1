"""The index of a golden run: places, reach, consistent cuts, and what recovery chooses."""

from __future__ import annotations

import pytest

from chaosckpt.model.census import GoldenRun, Label, Point
from chaosckpt.model.fault import Trigger
from chaosckpt.model.golden_index import GoldenIndex
from chaosckpt.model.operation import Address
from tests.strategies.dcp_model import MAIN, Walk, golden, programs


@pytest.fixture(scope="module")
def golden_index() -> GoldenIndex:
    return GoldenIndex(golden(MAIN, None))


def index(golden_index: GoldenIndex, rank: int, op: str, path: str, nth: int = 0) -> int:
    for i, point in enumerate(golden_index.points):
        address = point.address
        if (address.rank, address.op, address.path, address.nth) == (rank, op, f"shared:{path}", nth):
            return i
    raise AssertionError(f"no {op} on {path}")


def test_peers_stand_at_their_reach(golden_index):
    """Held at its mkdir, a rank lets its peer do its own mkdir only; held in its data, all of the peer's data."""
    mkdir = index(golden_index, 1, "mkdir", "step_4")
    in_data = index(golden_index, 1, "write", "step_4/__1_0.distcp", 3)
    held_at_mkdir = golden_index.at_rest([Trigger(golden_index.points[mkdir].address)])
    held_in_data = golden_index.at_rest([Trigger(golden_index.points[in_data].address)])
    assert held_at_mkdir is not None
    assert held_in_data is not None
    assert held_at_mkdir[0] == golden_index.place(index(golden_index, 0, "mkdir", "step_4")) + 1
    assert held_in_data[0] == golden_index.place(index(golden_index, 0, "open_write", "step_4/.metadata.tmp"))


def test_after_counts_the_operation_itself(golden_index):
    """Held after its operation, a rank has performed one more than held before it, or in its midst."""
    address = golden_index.points[index(golden_index, 0, "write", "step_2/__0_0.distcp")].address
    counts = [golden_index.at_rest([Trigger(address, when, 1)]) for when in ("before", "torn", "after")]
    assert [c[0] for c in counts if c] == [3, 3, 4]


def test_consistent_cuts_are_those_at_which_all_arrive(golden_index):
    """Two operations can be held together exactly when each is come to while the other is held, as the job itself shows."""
    chosen = range(0, len(golden_index.points), 3)
    for i in chosen:
        for j in chosen:
            a, b = golden_index.points[i].address.rank, golden_index.points[j].address.rank
            if a >= b:
                continue
            walk = Walk(programs(MAIN, None))
            walk.go_on({a: golden_index.place(i), b: golden_index.place(j)})
            arrived = walk.ready() == [a, b] and walk.counts == [golden_index.place(i), golden_index.place(j)]
            assert golden_index.consistent((i, j)) == arrived, (i, j)


def test_surely_before_holds_for_every_speed(golden_index):
    """What is surely before is never attempted while the other is held; within a rank it is the order of its operations."""
    i, j = index(golden_index, 1, "mkdir", "step_4"), index(golden_index, 0, "open_write", "step_4/__0_0.distcp")
    assert golden_index.surely_before(i, j)
    assert not golden_index.surely_before(j, i)
    k = index(golden_index, 0, "mkdir", "step_4")
    assert golden_index.order(i, k) == 0
    assert golden_index.order(k, j) == -1


def test_recovery_chooses_the_newest_commit_that_was_performed(golden_index):
    """Before the rename it is the step before, after it the step itself; before the first one it is none."""
    rename = {step: golden_index.points[i].address for step, i in golden_index.commits.items()}
    chosen = {
        (step, when): golden_index.resumes_from(golden_index.at_rest([Trigger(rename[step], when)]) or ())
        for step in (2, 4)
        for when in ("before", "after")
    }
    assert chosen == {(2, "before"): None, (2, "after"): 2, (4, "before"): 2, (4, "after"): 4}


def test_ranks_that_finish_independently_all_have_to():
    """Where each rank renames its own file, the step is committed by whoever is last, in the recorded run and in any."""
    label = Label("persist", 2)
    own = [Point(Address(rank, "main", "rename", f"shared:{rank}", 0, 0), label) for rank in (0, 1)]
    for points in (tuple(own), tuple(reversed(own))):
        found = GoldenIndex(GoldenRun(topology=MAIN, resumed_from=None, points=points, commits={2: 1}))
        assert [found.resumes_from(counts) for counts in ((1, 0), (0, 1), (1, 1))] == [None, None, 2]


def test_without_commit_points_the_end_of_a_save_commits_it():
    """The last of its operations on all ranks stands in for a commit point that isn't known."""
    run = golden(MAIN, None)
    bare = GoldenRun(topology=MAIN, resumed_from=None, points=run.points, reach=run.reach)
    found = GoldenIndex(bare)
    assert found.steps == (2, 4, 6)
    assert found.commits == GoldenIndex(run).commits


def test_a_resumed_run_borrows_the_main_runs_commit_points():
    """The same operations commit the same steps, whatever was resumed from."""
    main, resumed = golden(MAIN, None), golden(MAIN, 2)
    bare = GoldenRun(topology=MAIN, resumed_from=2, points=resumed.points, reach=resumed.reach)
    assert GoldenIndex(bare, main).commits == GoldenIndex(resumed).commits


@pytest.mark.parametrize("step", [2, 4])
def test_a_resumed_run_borrows_the_main_runs_reach(step):
    """What a peer waits for in a save is the same whatever was resumed from: the borrowed reach equals the measured one."""
    measured = golden(MAIN, step).ordered()
    borrowed = GoldenIndex(golden(MAIN, step, ladder=False), golden(MAIN, None))
    found = [borrowed.known_reach(i) for i in range(len(borrowed.points))]
    known = [i for i, reach in enumerate(found) if reach is not None]
    assert all(found[i] == measured.reach[i] for i in known)
    saving = [i for i, point in enumerate(borrowed.points) if point.label.step is not None]
    assert set(known) <= set(saving)
    assert len(known) > 0.9 * len(saving)


def test_without_a_ladder_only_single_ranks_are_cut():
    """Nothing is known of how far peers get, so no vector cut is consistent and only a rank's own order is sure."""
    found = GoldenIndex(golden(MAIN, None, ladder=False))
    i, j = index(found, 0, "mkdir", "step_2"), index(found, 1, "mkdir", "step_2")
    assert not found.consistent((i, j))
    assert not found.surely_before(i, index(found, 1, "open_write", "step_4/__1_0.distcp"))
    assert found.at_rest([Trigger(found.points[i].address)]) is not None
