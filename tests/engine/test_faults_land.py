"""Each kind of fault on a real job: it lands with evidence, and a correct target outlives it."""

from __future__ import annotations

import pytest

from chaosckpt.faults.bit_flip import BitFlip
from chaosckpt.faults.cut import Cut
from chaosckpt.faults.errno import StorageError
from chaosckpt.faults.hold_until import HoldUntil
from chaosckpt.faults.latency import Latency
from chaosckpt.faults.local_storage_loss import LocalStorageLoss
from chaosckpt.faults.mtimes import Mtimes
from chaosckpt.faults.node_loss import NodeLoss
from chaosckpt.faults.not_visible import NotVisible
from chaosckpt.faults.read_only import ReadOnly
from chaosckpt.faults.saver_kill import SaverKill
from chaosckpt.faults.shared_storage_loss import SharedStorageLoss
from chaosckpt.faults.short_write import ShortWrite
from chaosckpt.faults.sigkill import Sigkill
from chaosckpt.faults.sigstop import Sigstop
from chaosckpt.faults.sigterm import Sigterm
from chaosckpt.faults.space import Space
from chaosckpt.faults.stale_save import StaleSave
from chaosckpt.faults.truncation import Truncation
from chaosckpt.faults.unavailable import Unavailable
from chaosckpt.faults.world_size import WorldSize
from chaosckpt.model import journal as j
from chaosckpt.model.fault import Trigger
from chaosckpt.model.operation import Address, When
from chaosckpt.model.topology import Topology
from tests.engine.case import Case, chosen, landed, outcomes


def test_a_trial_without_faults_passes_and_saves_three_times(dcp: Case) -> None:
    """Goal: the control: nothing is injected, everything is judged, nothing is found."""
    journal, verdict = dcp.run()
    assert verdict.outcome == "pass", verdict
    assert outcomes(journal) == ["finished"]
    assert {event.step for event in journal.events if isinstance(event, j.Acknowledged)} == {1, 2, 3}


@pytest.mark.parametrize("when", ["before", "after", "torn"])
def test_a_killed_job_resumes_from_the_last_complete_checkpoint(dcp: Case, when: When) -> None:
    """Goal: killed while step 2 is written, the job resumes from step 1 and ends."""
    journal, verdict = dcp.run([Cut((dcp.trigger("write", when, rank=1, save=2, which=1),))])
    assert verdict.outcome == "pass", verdict
    assert chosen(journal, 1) == {1}
    assert outcomes(journal) == ["killed", "finished"]


@pytest.mark.parametrize("when", ["before", "after", "torn"])
def test_sigkill_of_one_rank(dcp: Case, when: When) -> None:
    """Goal: one rank dies at its operation, and the next launch recovers."""
    journal, verdict = dcp.run([Sigkill(dcp.trigger("write", when, rank=0, save=2, which=3))])
    assert verdict.outcome == "pass", verdict
    (fault,) = landed(journal)
    assert fault.operation is not None
    assert fault.operation.address.rank == 0
    assert chosen(journal, 1) == {1}


def test_sigterm_with_grace(dcp: Case) -> None:
    """Goal: every rank is told to end in the middle of a save, unwinds, and leaves with the exit code of SIGTERM."""
    journal, verdict = dcp.run([Sigterm(dcp.trigger("write", rank=0, save=2), everyone=True, grace_ms=5000)])
    assert verdict.outcome == "pass", verdict
    codes = {event.exit_code for event in journal.events if isinstance(event, j.RankExited) and event.attempt == 0}
    assert 143 in codes


def test_node_loss_takes_the_node_and_its_storage(two_tier: Case) -> None:
    """Goal: a lost node's ranks are dead and its node-local storage empty; what was drained to shared storage is found."""
    journal, verdict = two_tier.run([NodeLoss(two_tier.trigger("write", rank=1, save=3), group=1)])
    assert verdict.outcome == "pass", verdict
    (gone,) = [event for event in journal.events if isinstance(event, j.StorageDestroyed)]
    assert (gone.tier, gone.node, gone.cause) == ("local", 1, "node-loss")
    assert gone.files > 0
    assert chosen(journal, 1) == {2}


def test_local_storage_dropped_at_the_restart(two_tier: Case) -> None:
    """Goal: without its node-local storage the job goes back to what shared storage holds."""
    first = Cut((two_tier.trigger("write", rank=0, save=3),))
    journal, verdict = two_tier.run([first], [LocalStorageLoss(node=0)])
    assert verdict.outcome == "pass", verdict
    assert [fault.kind for fault in landed(journal)] == ["cut", "local-storage-loss"]
    assert chosen(journal, 1) == {2}


def test_lost_shared_storage_must_be_told_clearly(dcp: Case) -> None:
    """Goal: with everything gone, a job that was told to resume fails on every rank instead of beginning again."""
    journal, verdict = dcp.run([dcp.cut_after_commit(2)], [SharedStorageLoss()])
    assert verdict.outcome == "pass", verdict
    assert "clear-failure" in verdict.judged
    assert outcomes(journal)[-1] == "failed"


@pytest.mark.parametrize(("op", "error"), [("write", "EIO"), ("fsync", "EIO"), ("open_write", "EIO"), ("mkdir", "EIO")])
def test_an_error_in_a_save_fails_that_save_only(dcp: Case, op: str, error: str) -> None:
    """Goal: the injected errno is seen by the target, and the next launch resumes."""
    journal, verdict = dcp.run([StorageError(dcp.trigger(op, rank=0, save=2), error=error)])
    assert verdict.outcome == "pass", verdict
    assert any(isinstance(event, j.ErrorInjected) for event in journal.events)


@pytest.mark.parametrize("error", ["ENOSPC", "EDQUOT"])
def test_a_full_tier(dcp: Case, error: str) -> None:
    """Goal: the byte budget runs out in the middle of a save; with room again, the job ends."""
    journal, verdict = dcp.run([Space(budget_bytes=30_000, tier="shared", error=error)])  # type: ignore[arg-type]
    assert verdict.outcome == "pass", verdict
    assert any(isinstance(event, j.ErrorInjected) for event in journal.events)
    assert outcomes(journal)[-1] == "finished"


def test_latency_delays_and_changes_nothing(dcp: Case) -> None:
    """Goal: a slow operation is only slow."""
    journal, verdict = dcp.run([Latency(dcp.trigger("fsync", rank=1, save=1), latency_ms=50)])
    assert verdict.outcome == "pass", verdict
    assert outcomes(journal) == ["finished", "finished"]


def test_a_short_write_is_finished_by_the_caller(dcp: Case) -> None:
    """Goal: a write that takes only a part of its data is legal, and a correct writer writes the rest."""
    trigger = dcp.trigger("write", rank=0, save=1, which=1)
    journal, verdict = dcp.run([ShortWrite(trigger, length=10)])
    assert verdict.outcome == "pass", verdict
    assert landed(journal)


def test_the_world_grows_shrinks_and_comes_back(dcp: Case) -> None:
    """Goal: two ranks become three, then one, then two; parameters, optimizer, scheduler and step are carried over."""
    main = dcp.census.main
    cut = dcp.cut_after_commit(1)
    again = [WorldSize(Topology((2, 1)))], [WorldSize(Topology((1,)))], [WorldSize(Topology((1, 1)))]
    journal, verdict = dcp.run([cut], *again)
    assert verdict.outcome == "pass", verdict
    started = [event.ranks for event in journal.events if isinstance(event, j.AttemptStarted)]
    assert started == [main.topology.ranks, (2, 1), (1,), (1, 1), (1, 1)]


def test_a_fault_during_recovery(dcp: Case) -> None:
    """Goal: a job that is killed while it loads a checkpoint loads the same one at the next launch."""
    second = Cut((dcp.in_recovery("read", "before", rank=1, resumed_from=2),))
    journal, verdict = dcp.run([dcp.cut_after_commit(2)], [second])
    assert verdict.outcome == "pass", verdict
    assert chosen(journal, 2) == {2}
    assert landed(journal)[1].label == "load of the recovery"


@pytest.mark.parametrize("op", ["list", "open_read", "read", "stat"])
def test_an_error_while_a_job_recovers(dcp: Case, op: str) -> None:
    """Goal: EIO from a listing, a look, an open or a read of a recovery is seen by the target; the next launch recovers."""
    strike = StorageError(dcp.in_recovery(op, rank=0, resumed_from=2), error="EIO")
    journal, verdict = dcp.run([dcp.cut_after_commit(2)], [strike])
    assert verdict.outcome == "pass", verdict
    (error,) = [event for event in journal.events if isinstance(event, j.ErrorInjected)][:1]
    assert (error.attempt, error.error) == (1, "Input/output error")
    assert chosen(journal, 2) == {2}


@pytest.mark.parametrize("continues", [False, True])
def test_a_stopped_rank_is_given_up_by_its_peers(dcp: Case, continues: bool) -> None:
    """Goal: the peer of a hung rank runs into its own deadline; what the stopped rank then does is the fault's doing."""
    strike = Sigstop(dcp.trigger("write", rank=0, save=2, which=3), continues=continues)
    outcome, events = dcp.cut_only(strike)
    exits = {event.rank: event for event in events if isinstance(event, j.RankExited)}
    assert outcome == "killed"
    assert (exits[1].by, exits[1].exit_code) == ("self", 1)
    assert (exits[0].by, exits[0].signal) == ("fault", None if continues else 9)
    assert (strike.at.address in {it.address for it in dcp.performed()[0]}) == continues


def test_a_killed_saver_is_noticed_by_its_rank(child_saver: Case) -> None:
    """Goal: the child that writes dies, its rank lives and fails the save; nothing is acknowledged that isn't there."""
    point = child_saver.point(lambda p: (p.address.role, p.address.op, p.label.step) == ("child", "write", 2), 2)
    journal, verdict = child_saver.run([SaverKill(Trigger(point.address))])
    assert verdict.outcome == "pass", verdict
    assert outcomes(journal) == ["killed", "finished"]
    exits = [event for event in journal.events if isinstance(event, j.RankExited) and event.attempt == 0]
    assert {(event.by, event.exit_code) for event in exits} == {("self", 1)}
    assert any("ended with status 9" in event.message for event in journal.events if isinstance(event, j.Raised))
    assert chosen(journal, 1) == {1}


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0)])
def test_a_race_is_decided_either_way(dcp: Case, first: int, second: int) -> None:
    """Goal: of two writes whose order is open, either can be made to wait for the other."""
    late = dcp.trigger("write", rank=second, save=2, which=3)
    early = dcp.trigger("write", "after", rank=first, save=2, which=3)
    outcome, events = dcp.cut_only(HoldUntil(late, early))
    assert outcome == "finished"
    assert [event.kind for event in events if isinstance(event, j.FaultInjected)] == ["hold-until"]


def test_a_directory_that_one_rank_does_not_see(dcp: Case) -> None:
    """Goal: its listing lacks the newest checkpoint, so an older one may be taken; the next launch sees it again."""
    strike = NotVisible(dcp.in_recovery("list", rank=0, resumed_from=2), "shared:step-000002")
    journal, verdict = dcp.run([dcp.cut_after_commit(2)], [strike])
    assert verdict.outcome == "pass", verdict
    assert "listed without step-000002" in landed(journal)[1].evidence
    assert chosen(journal, 1) == {1}
    assert chosen(journal, 2) == {2}


def test_a_file_that_one_rank_does_not_see(dcp: Case) -> None:
    """Goal: a lookup is answered with ENOENT once, on one rank, and every rank fails alike."""
    at = dcp.in_recovery("open_read", rank=1, resumed_from=2)
    journal, verdict = dcp.run([dcp.cut_after_commit(2)], [NotVisible(at, at.address.path, lookups=1)])
    assert verdict.outcome == "pass", verdict
    struck = [event for event in journal.events if isinstance(event, j.ErrorInjected)]
    assert [(event.rank, event.error) for event in struck] == [(1, "No such file or directory")]
    assert chosen(journal, 2) == {2}


def test_a_read_only_tier_is_so_on_every_node(two_node_processes: Case, dcp: Case) -> None:
    """Goal: once it is in force, no rank of any node writes any more, from the very next operation on."""
    two_node_processes._census = dcp.census
    journal, verdict = two_node_processes.run([ReadOnly(dcp.trigger("stat", rank=0, save=2))])
    assert verdict.outcome == "pass", verdict
    struck = {event.rank: event for event in journal.events if isinstance(event, j.ErrorInjected)}
    assert {(rank, event.error) for rank, event in struck.items()} == {
        (0, "Read-only file system"),
        (1, "Read-only file system"),
    }
    assert chosen(journal, 1) == {1}


def test_the_operation_at_which_a_tier_turns_read_only_is_refused(dcp: Case) -> None:
    """Goal: what was held until every node knew is decided anew, and fails."""
    at = dcp.trigger("write", rank=0, save=2, which=3)
    journal, verdict = dcp.run([ReadOnly(at)])
    assert verdict.outcome == "pass", verdict
    first = next(event for event in journal.events if isinstance(event, j.ErrorInjected))
    assert first.operation.address == at.address
    (fault,) = landed(journal)
    assert journal.events.index(fault) < journal.events.index(first)


def test_storage_that_does_not_answer_for_a_while(dcp: Case) -> None:
    """Goal: every operation waits until nobody can go on, in a save and in a recovery; then all happens as if nothing had."""
    save, load = dcp.trigger("write", rank=0, save=2), dcp.in_recovery("read", rank=1, resumed_from=2)
    journal, verdict = dcp.run([Unavailable(save), dcp.cut_after_commit(2)], [Unavailable(load)])
    assert verdict.outcome == "pass", verdict
    assert [fault.kind for fault in landed(journal)] == ["unavailable", "cut", "unavailable"]
    assert outcomes(journal) == ["killed", "finished", "finished"]


@pytest.mark.parametrize("kind", [BitFlip, Truncation])
def test_damage_at_rest(dcp: Case, kind: type[BitFlip | Truncation]) -> None:
    """Goal: a file that the recovery reads is damaged before the launch; a target without checksums owes nothing then."""
    path = dcp.in_recovery("read", rank=0, resumed_from=2).address.path
    journal, verdict = dcp.run([dcp.cut_after_commit(2)], [kind(path, 5)])
    assert verdict.outcome == "pass", verdict
    (mutated,) = [event for event in journal.events if isinstance(event, j.StorageMutated)]
    assert (mutated.path, mutated.damages) == (path, True)
    assert landed(journal)[1].needs == ("integrity",)


def test_damage_without_its_file_misses(dcp: Case) -> None:
    """Goal: where there is nothing to strike the trial is no pass, and says why."""
    journal, verdict = dcp.run([dcp.cut_after_commit(1)], [Truncation("shared:step-000003/.metadata")])
    assert verdict.outcome == "inconclusive"
    (missed,) = [event for event in journal.events if isinstance(event, j.FaultNotInjected)]
    assert "shared storage had nothing that the fault could change" in missed.reason


def test_what_misleads_only_by_times_and_numbers(dcp: Case) -> None:
    """Goal: reversed times and the beginnings of a save of a longer run change nothing for who looks at what is complete."""
    stale = StaleSave(("shared:step-1000002",), ("shared:step-1000002/__0_0.distcp",))
    journal, verdict = dcp.run([stale, dcp.cut_after_commit(2)], [Mtimes()])
    assert verdict.outcome == "pass", verdict
    assert chosen(journal, 1) == {2}
    mutated = [event for event in journal.events if isinstance(event, j.StorageMutated)]
    assert [(event.attempt, event.damages) for event in mutated] == [(0, False), (0, False), (1, False)]


def test_a_fault_that_does_not_land_is_no_pass(dcp: Case) -> None:
    """Goal: an operation that this run never performs makes the trial inconclusive."""
    nowhere = Trigger(Address(0, "main", "write", "shared:nowhere", 1, 0))
    journal, verdict = dcp.run([Cut((nowhere,))])
    assert verdict.outcome == "inconclusive"
    assert [event.kind for event in journal.events if isinstance(event, j.FaultNotInjected)] == ["cut"]
