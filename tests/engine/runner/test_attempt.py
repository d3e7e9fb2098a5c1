"""The attempt loop over a node that is only a script of reports: what is recorded, in which order, and what a listener hears."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.attempt import AttemptRun, Heard, Listener
from chaosckpt.engine.runner.deadlines import Deadlines
from chaosckpt.engine.runner.node_client import Inbox, Node
from chaosckpt.engine.runner.quiescence import Quiescence
from chaosckpt.engine.runner.ranks import Ranks
from chaosckpt.engine.wire.orders import AttemptOrder
from chaosckpt.engine.wire.reports import Exited, Held, Push, Retained, StageMark, Trouble
from chaosckpt.engine.wire.requests import Sample
from chaosckpt.errors import HarnessError
from chaosckpt.faults.cut import Cut
from chaosckpt.faults.local_storage_loss import LocalStorageLoss
from chaosckpt.faults.mtimes import Mtimes
from chaosckpt.faults.world_size import WorldSize
from chaosckpt.model import journal as j
from chaosckpt.model.fault import Fault, Trigger
from chaosckpt.model.operation import Address, Operation
from chaosckpt.model.topology import Topology

TWO = Topology((2,))
ADDRESSES = (Address(0, "main", "write", "shared:a", 1, 0), Address(1, "main", "write", "shared:b", 1, 0))


def operation(rank: int) -> Operation:
    return Operation(address=ADDRESSES[rank], sequence=0, raw=ADDRESSES[rank].path)


def exited(rank: int, status: int = 0) -> Exited:
    return Exited(rank, status, "fault" if status else "self", "", 1, ())


class ScriptedNode:
    """Reports what it was given once the ranks are started, and does nothing else; killed ranks exit by SIGKILL."""

    address = "127.0.0.1"
    inbox: Inbox

    def __init__(self, reports: Sequence[Push], after_resume: Sequence[Push] = ()) -> None:
        self.reports = reports
        self.after_resume = list(after_resume)
        self.asked: list[str] = []

    def start(self, order: AttemptOrder) -> None:
        self._report(self.reports)

    def _report(self, reports: Sequence[Push]) -> None:
        for report in reports:
            self.inbox.put((cast(Node, self), report))

    def sample(self) -> Sample:
        return Sample((), (), pending=False, operations=0, caller=0)

    def counts(self) -> dict[int, int]:
        return {}

    def freeze(self) -> None:
        self.asked.append("freeze")

    def kill(self, ranks: Sequence[int] | None, by: str) -> bool:
        self.asked.append("kill")
        self._report([exited(rank, 9) for rank in (0, 1)])
        return True

    def resume(self, fault: int) -> None:
        self.asked.append(f"resume {fault}")
        self._report(self.after_resume)
        self.after_resume = []

    def drop(self, directory: str) -> int:
        return 0

    def mutate(self, tier: str, directory: str, mutation: object) -> list[object]:
        return []


def attempt(
    node: ScriptedNode, faults: Sequence[Fault] = (), listener: Listener | None = None
) -> tuple[AttemptRun, list[j.AnyEvent]]:
    events: list[j.AnyEvent] = []
    order = AttemptOrder(attempt=1, intent="resume", world_size=2, places=())
    arena = Arena([cast(Node, node)], Path("/nowhere"), Path("/nowhere"))
    run = AttemptRun(arena, order, TWO, faults, events.append, Deadlines(), listener=listener)
    return run, events


class Notes(Listener):
    def __init__(self) -> None:
        self.notes: list[object] = []

    def heard(self, message: Heard) -> None:
        self.notes.append(message)

    def stepped(self, held: Sequence[Operation], ranks: Ranks, rest: Quiescence) -> None:
        self.notes.append([one.address for one in held])


def test_a_listener_hears_what_is_no_event_of_the_journal() -> None:
    """Goal: the journal holds events alone, the end of the attempt last; a stage mark is neither."""
    report = Retained(0, (2, 4))
    node = ScriptedNode([j.RecoveryStarted(attempt=1, rank=0), report, StageMark(0, "commit"), exited(0), exited(1)])
    notes = Notes()
    run, events = attempt(node, listener=notes)
    assert run.run() == "finished"
    assert notes.notes == [report]
    kinds = [type(event) for event in events]
    assert kinds == [j.RecoveryStarted, j.RankExited, j.RankExited, j.AttemptEnded]


def test_the_evidence_of_a_cut_comes_before_the_deaths_that_it_causes() -> None:
    """Goal: what follows from a fault is never told before it; every gate is shut before the first rank dies."""
    cut = Cut(tuple(Trigger(address) for address in ADDRESSES))
    node = ScriptedNode([Held(0, rank, operation(rank), "persist of save 2") for rank in (0, 1)])
    run, events = attempt(node, [cut])
    assert run.run() == "killed"
    assert node.asked == ["freeze", "kill"]
    assert [type(event) for event in events] == [j.FaultInjected, j.RankExited, j.RankExited, j.AttemptEnded]
    landed = events[0]
    assert isinstance(landed, j.FaultInjected)
    assert (landed.label, landed.operation) == ("persist of save 2", operation(0))


def test_a_cut_that_only_one_rank_reaches_is_given_up_when_nothing_moves() -> None:
    """Goal: quiescence, and no clock, tells that the other rank won't come; what was held goes on, and the reason is told."""
    cut = Cut(tuple(Trigger(address) for address in ADDRESSES))
    node = ScriptedNode([Held(0, 0, operation(0), "")], after_resume=[exited(0), exited(1)])
    run, events = attempt(node, [cut])
    assert run.run() == "finished"
    assert node.asked == ["resume 0"]
    missed = [event for event in events if isinstance(event, j.FaultNotInjected)]
    assert [event.reason for event in missed] == ["only 1 of the 2 operations of the fault were reached together"]


def test_each_fault_between_attempts_has_its_own_reason() -> None:
    """Goal: that one fault found nothing to change says nothing about another one."""
    node = ScriptedNode([exited(0), exited(1)])
    run, events = attempt(node, [Mtimes(), LocalStorageLoss()])
    run.inject_between(TWO)
    run.run()
    missed = {event.kind: event.reason for event in events if isinstance(event, j.FaultNotInjected)}
    assert missed == {
        "mtimes": "shared storage had nothing that the fault could change",
        "local-storage-loss": "storage had nothing that the fault could change",
    }


def test_a_change_of_the_world_is_told_before_the_ranks_start() -> None:
    """Goal: its evidence says from which topology to which, and it counts as injected."""
    run, events = attempt(ScriptedNode([exited(0), exited(1)]), [WorldSize(TWO)])
    run.inject_between(Topology((1,)))
    assert [event.evidence for event in events if isinstance(event, j.FaultInjected)] == ["1 became 2"]
    run.run()
    assert not [event for event in events if isinstance(event, j.FaultNotInjected)]


def test_a_stepped_rank_is_held_at_rest_and_let_go() -> None:
    """Goal: whoever steps a rank is given what is held, while nothing moves, and the rank goes on after that."""
    node = ScriptedNode([Held(-1, 0, operation(0), "")], after_resume=[exited(0), exited(1)])
    notes = Notes()
    run, _ = attempt(node, listener=notes)
    assert run.run() == "finished"
    assert notes.notes == [[ADDRESSES[0]]]
    assert node.asked == ["resume -1"]


def test_trouble_of_a_node_is_the_harnesses_own() -> None:
    """Goal: it ends the attempt as an error of the harness, and is no outcome."""
    run, _ = attempt(ScriptedNode([Trouble("the fork server of this node has died")]))
    with pytest.raises(HarnessError, match="fork server"):
        run.run()


def test_a_listener_is_told_of_a_job_that_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: whoever waits for a run that gets nowhere can say so; a clock decides only when that is said."""
    monkeypatch.setattr("chaosckpt.engine.runner.attempt._QUIET_SECONDS", 0.0)
    node = ScriptedNode([])

    class Standstill(Listener):
        def quiet(self, seconds: float, ranks: Ranks) -> None:
            node._report([exited(0), exited(1)])

    run, _ = attempt(node, listener=Standstill())
    assert run.run() == "finished"
