"""Kept storage: what was acknowledged after an error is copied at that moment, on however many nodes, and nothing of it stays."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chaosckpt.engine.runner.arena import inventory, node_settings
from chaosckpt.engine.runner.attempt import AttemptRun
from chaosckpt.engine.runner.kept import Keeper
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.faults.errno import StorageError
from chaosckpt.model import journal as j
from chaosckpt.model.fault import Trigger
from chaosckpt.model.operation import Address, Operation
from tests.engine.case import PATIENT, Case, scenario_of


def loaded(events: Iterable[j.AnyEvent]) -> dict[j.Moment, set[int]]:
    """The ranks that loaded the step of each audit of kept storage."""
    found: dict[j.Moment, set[int]] = {}
    for event in events:
        if isinstance(event, j.Audited) and event.as_of is not None and event.digest is not None:
            found.setdefault(event.as_of, set()).add(event.rank)
    return found


def copies_left(case: Case) -> list[Path]:
    return [copy for path in case.arena.tiers(0).values() for copy in Path(path).parent.glob("*.kept-*")]


def test_what_is_acknowledged_as_shared_loads_without_node_local_storage(two_tier: Case) -> None:
    """Goal: a target that promises to survive the loss of node-local storage is held to it after an error, whatever is there still."""
    making = two_tier.point(
        lambda point: point.address.op == "mkdir" and point.address.path.startswith("local:step-000002")
    )
    fault = StorageError(Trigger(making.address), "EEXIST")
    case = Case(scenario_of("two-tier", workload={"retries": 1}), two_tier.arena)
    settings = node_settings(case.scenario, case.arena.directory, gate=True)
    case.arena.nodes[0].use(settings)
    try:
        journal, verdict = case.run([fault])
    finally:
        case.arena.nodes[0].use(node_settings(two_tier.scenario, case.arena.directory, gate=True))
    assert (verdict.outcome, verdict.gaps) == ("pass", ()), verdict
    alone = {moment.step: ranks for moment, ranks in loaded(journal.events).items() if moment.alone}
    assert alone == {2: {0, 1}, 3: {0, 1}}
    assert not copies_left(case)


def test_kept_of_several_nodes_while_no_gate_is_served(two_node_processes: Case) -> None:
    """Goal: with a process a node every gate is shut while storage is copied, and served again: the job goes on to its end."""
    arena, topology = two_node_processes.arena, two_node_processes.scenario.topology.topologies[0]
    arena.reset()
    keeper = Keeper(arena, topology, ())
    address = Address(rank=0, role="main", op="write", path="shared:file", incarnation=1, nth=0)
    keeper.see(j.ErrorInjected(rank=0, error="EIO", operation=Operation(address=address, sequence=0, raw="")))
    order = AttemptOrder(attempt=0, intent="start", world_size=2, places=(), collective_timeout_seconds=20.0)
    assert AttemptRun(arena, order, topology, (), keeper.see, PATIENT).run() == "finished"
    assert [kept.moment for kept in keeper.kept] == [j.Moment(step, "shared") for step in (1, 2, 3)]
    now = inventory(arena)
    with keeper.standing(keeper.kept[0]):
        then = inventory(arena)
    assert set(then) < set(now), "only the first step was there"
    assert inventory(arena) == now
    keeper.discard()
    assert not copies_left(two_node_processes)
