"""Each kind of fault on a real job: it lands with evidence, and a correct target outlives it."""

from __future__ import annotations

import pytest

from chaosckpt.faults.cut import Cut
from chaosckpt.faults.errno import StorageError
from chaosckpt.faults.latency import Latency
from chaosckpt.faults.local_storage_loss import LocalStorageLoss
from chaosckpt.faults.node_loss import NodeLoss
from chaosckpt.faults.shared_storage_loss import SharedStorageLoss
from chaosckpt.faults.short_write import ShortWrite
from chaosckpt.faults.sigkill import Sigkill
from chaosckpt.faults.sigterm import Sigterm
from chaosckpt.faults.space import Space
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


def test_a_fault_that_does_not_land_is_no_pass(dcp: Case) -> None:
    """Goal: an operation that this run never performs makes the trial inconclusive."""
    nowhere = Trigger(Address(0, "main", "write", "shared:nowhere", 1, 0))
    journal, verdict = dcp.run([Cut((nowhere,))])
    assert verdict.outcome == "inconclusive"
    assert [event.kind for event in journal.events if isinstance(event, j.FaultMissed)] == ["cut"]
