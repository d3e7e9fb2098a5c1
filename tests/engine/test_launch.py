"""Launching ranks: forked from a warm parent or started cold, the job is the same."""

from __future__ import annotations

from pathlib import Path

from chaosckpt.engine.wire.process_tree import descendants
from chaosckpt.model import journal as j
from tests.engine.case import Case, scenario_of


def test_cold_ranks_have_the_same_digests_as_forked_ones(dcp: Case) -> None:
    """Goal: `launch = "exec"` changes the cost of a rank, and nothing that it computes or saves."""
    _, warm = dcp.cut_only()
    cold_case = Case(scenario_of("dcp", run={"launch": "exec"}))
    try:
        outcome, cold = cold_case.cut_only()
        assert outcome == "finished"
    finally:
        cold_case.close()
    assert _digests(cold) == _digests(warm)


def _digests(events: list[j.AnyEvent]) -> set[object]:
    return {
        (type(event).__name__, event.rank, str(event.digest))
        for event in events
        if isinstance(event, j.SaveStarted | j.Recovered | j.Finished)
    }


def test_a_closed_arena_leaves_no_process_and_no_file() -> None:
    """Goal: node process, fork server and ranks are gone with the arena, and so is its storage."""
    case = Case(scenario_of("torch-save-atomic"))
    case.cut_only()
    node = case.arena.nodes[0]
    tree = descendants(node.pid)  # type: ignore[attr-defined]
    assert len(tree) > 1
    directory = case.arena.directory
    case.close()
    assert not directory.exists()
    assert not [pid for pid in tree if Path(f"/proc/{pid}").exists()]


def test_fsdp2_reshards_two_ranks_to_three_to_one() -> None:
    """Goal: a sharded model is saved by two ranks and recovered by three, then by one."""
    from chaosckpt.faults.world_size import WorldSize
    from chaosckpt.model.topology import Topology

    case = Case(scenario_of("dcp", ((1, 1), (2, 1), (1,)), workload={"strategy": "fsdp2"}))
    try:
        cut = case.cut_after_commit(1)
        journal, verdict = case.run([cut], [WorldSize(Topology((2, 1)))], [WorldSize(Topology((1,)))])
    finally:
        case.close()
    assert verdict.outcome == "pass", verdict
    assert [sum(event.ranks) for event in journal.events if isinstance(event, j.AttemptStarted)] == [2, 3, 1, 1]
