"""Kept storage: what was acknowledged after an error is copied at that moment, on however many nodes, and nothing of it stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaosckpt.engine.runner.arena import inventory, node_settings
from chaosckpt.engine.runner.attempt import AttemptRun
from chaosckpt.engine.runner.kept import Keeper
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.faults.errno import StorageError
from chaosckpt.faults.saver_kill import SaverKill
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
    with using(case, two_tier):
        journal, verdict = case.run([fault])
    assert (verdict.outcome, verdict.gaps) == ("pass", ()), verdict
    alone = {moment.step: ranks for moment, ranks in loaded(journal.events).items() if moment.alone}
    alone.pop(1, None)  # its drain may be acknowledged before the error or after it
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


@pytest.mark.parametrize(("name", "outcome"), [("ChildSaver", "pass"), ("Negligent", "violation")])
def test_what_is_acknowledged_after_the_end_of_a_saver_process(child_saver: Case, name: str, outcome: str) -> None:
    """Goal: a killed saver fails no call, and what its rank acknowledges all the same is audited before it is retired."""
    writing = child_saver.point(lambda point: point.address.role == "child" and point.label.step == 2)
    use = child_saver.scenario.target.use.replace("ChildSaver", name)
    scenario = scenario_of(use, target={"options": {"keep": 1}}, workload={"retries": 1})
    case = Case(scenario, child_saver.arena)
    with using(case, child_saver):
        journal, verdict = case.run([SaverKill(Trigger(writing.address))])
    assert verdict.outcome == outcome, verdict
    assert j.Moment(2, "shared") in [event.as_of for event in journal.events if isinstance(event, j.AuditEnded)]
    if verdict.primary is not None:
        assert (verdict.primary.invariant, verdict.primary.step) == ("durable-acknowledgement", 2)
        assert "saver process killed" in verdict.primary.sentence


@contextmanager
def using(case: Case, owner: Case) -> Iterator[None]:
    """Lend the arena of a case to another one for this block."""
    node, directory = case.arena.nodes[0], case.arena.directory
    node.use(node_settings(case.scenario, directory, gate=True))
    try:
        yield
    finally:
        node.use(node_settings(owner.scenario, directory, gate=True))
