"""Cuts and deaths: where they leave the storage, and that it is the same each time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaosckpt.faults.cut import Cut
from chaosckpt.faults.sigkill import Sigkill
from chaosckpt.model import journal as j
from chaosckpt.model.fault import Trigger
from chaosckpt.model.operation import When
from tests.engine.case import Case

RUNS = 20


@contextmanager
def busy_machine() -> Iterator[None]:
    """Two processes that compute without a pause, as on a machine that others use."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def test_a_cut_leaves_the_same_directory_in_twenty_runs_some_of_them_under_load(dcp: Case) -> None:
    """Goal: no outcome of a cut depends on the machine's speed."""
    cut = Cut((dcp.trigger("write", "torn", rank=0, save=2, which=5),))
    left = set()
    for run in range(RUNS):
        if run < RUNS // 2:
            outcome, _ = dcp.cut_only(cut)
        else:
            with busy_machine():
                outcome, _ = dcp.cut_only(cut)
        assert outcome == "killed"
        left.add(dcp.snapshot())
    assert len(left) == 1


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("when", ["before", "after", "torn"])
def test_a_cut_naming_one_rank_finds_the_others_at_their_reach(dcp: Case, rank: int, when: When) -> None:
    """Goal: the peers of a held rank go exactly as far as the golden run's reach says, and are there when all are killed."""
    trigger = dcp.trigger("write", when, rank=rank, save=2, which=2)
    main = dcp.census.main
    index = next(i for i, point in enumerate(main.points) if point.address == trigger.address)
    dcp.cut_only(Cut((trigger,)))
    # Both ranks make the step's directory; the one that comes late looks at it, so that looks differ from run to run.
    for peer, done in enumerate(dcp.performed()):
        expected = [point.address for point in main.of_rank(peer)][
            : main.reach[index][peer] + (peer == rank and when != "before")
        ]
        assert [it.address for it in done if it.address.op != "stat"] == [at for at in expected if at.op != "stat"]


def test_a_cut_through_both_ranks_is_reached_only_where_it_is_consistent(dcp: Case) -> None:
    """Goal: a vector of operations that the golden run allows is arrived at; one that it doesn't allow is told, not waited for."""
    early = dcp.trigger("mkdir", "before", rank=0, save=2)
    peer = dcp.trigger("mkdir", "before", rank=1, save=2)
    outcome, _ = dcp.cut_only(Cut((early, peer)))
    assert outcome == "killed"
    late = dcp.trigger("fsync", "before", rank=1, save=2)
    outcome, events = dcp.cut_only(Cut((early, late)))
    assert outcome == "finished"
    (missed,) = [event for event in events if isinstance(event, j.FaultNotInjected)]
    assert "1 of the 2 operations" in missed.reason


def test_a_torn_write_leaves_exactly_its_first_bytes(dcp: Case) -> None:
    """Goal: torn at k bytes means k bytes on disk, of the very write that was torn."""
    point = dcp.point(
        lambda p: p.address.op == "write" and p.address.rank == 1 and p.label.step == 1 and (p.length or 0) > 64
    )
    sizes = {}
    for when, torn in (("before", 0), ("torn", 37)):
        trigger = Trigger(point.address, when, torn)  # type: ignore[arg-type]
        dcp.cut_only(Cut((trigger,)))
        shared = Path(dcp.arena.tiers(0)["shared"])
        sizes[when] = (shared / point.address.path.partition(":")[2]).stat().st_size
    assert sizes["torn"] == sizes["before"] + 37


def test_survivors_of_a_killed_rank_live_on_until_they_end_by_themselves(dcp: Case) -> None:
    """Goal: SIGKILL takes one rank; its peer meets the broken group, raises, and exits by itself."""
    outcome, events = dcp.cut_only(Sigkill(dcp.trigger("write", "before", rank=1, save=2, which=1)))
    exits = {event.rank: event for event in events if isinstance(event, j.RankExited)}
    assert outcome == "killed"
    assert (exits[1].by, exits[1].signal) == ("fault", 9)
    assert exits[0].by == "self"
    assert exits[0].exit_code == 1
    assert any(isinstance(event, j.Raised) and event.rank == 0 for event in events)


@pytest.mark.parametrize("step", [3, 4])
def test_a_cut_through_a_saver_and_the_training_thread(dcp_async: Case, step: int) -> None:
    """Goal: while a saver is held at its write, its rank trains on to exactly the step that the cut names."""
    point = dcp_async.point(lambda p: (p.address.role, p.address.op, p.label.step) == ("thread", "write", 2), 3)
    main = dcp_async.census.main
    assert main.training[main.points.index(point)] == 4
    outcome, events = dcp_async.cut_only(Cut((Trigger(point.address),), ((0, step), (1, step))))
    assert outcome == "killed"
    (landed,) = [event for event in events if isinstance(event, j.FaultInjected)]
    assert f"trained step {step}" in landed.evidence


def test_a_step_that_cannot_be_reached_is_told(dcp_async: Case) -> None:
    """Goal: training never gets beyond the save that awaits the held one, and the cut says so instead of waiting."""
    point = dcp_async.point(lambda p: (p.address.role, p.address.op, p.label.step) == ("thread", "write", 2), 3)
    outcome, events = dcp_async.cut_only(Cut((Trigger(point.address),), ((0, 5),)))
    assert outcome == "finished"
    (missed,) = [event for event in events if isinstance(event, j.FaultNotInjected)]
    assert "1 of the 2 operations" in missed.reason
