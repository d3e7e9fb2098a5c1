from __future__ import annotations

import pytest

from chaosckpt.model.guarantee import Guarantee
from chaosckpt.oracle.facts.requirement import Requirement, requirement
from chaosckpt.oracle.facts.saves import saves
from chaosckpt.oracle.facts.view import TargetView
from tests.oracle.journals import SCENARIO, TargetJournal, operation


def _required(trial: TargetJournal) -> Requirement:
    view = TargetView(SCENARIO, trial.journal())
    return requirement(view, view.attempts[-1])


def _steps(found: Requirement) -> tuple[int | None, list[int]]:
    return found.required.step if found.required else None, [save.step for save in found.permitted]


def test_acknowledged_by_every_rank_is_required() -> None:
    """The newest save acknowledged by all is required; it and newer started ones are permitted, newest first."""
    trial = TargetJournal().attempt().saves(2).saves(4).starts_save(6).acknowledges(6, ranks=[0])
    found = _required(trial.exits(by="fault").attempt(closing=True).recovers(4))
    assert _steps(found) == (4, [6, 4])
    assert found.kind == "must-recover"


def test_status_of_saves() -> None:
    """All started and all acknowledged; a participant dead before it; or still under way."""
    trial = TargetJournal().attempt().saves(2).starts_save(4).acknowledges(4, ranks=[0]).starts_save(6, ranks=[0])
    running = {save.step: save.status for save in saves(TargetView(SCENARIO, trial.journal()))}
    ended = {save.step: save.status for save in saves(TargetView(SCENARIO, trial.exits(by="fault").journal()))}
    assert running == {2: "acknowledged", 4: "started", 6: "started"}
    assert ended == {2: "acknowledged", 4: "indeterminate", 6: "indeterminate"}


def test_acknowledged_by_all_but_not_started_by_all_is_not_acknowledged() -> None:
    """Every rank of the attempt's world has to have started the save."""
    trial = TargetJournal().attempt().starts_save(2, ranks=[0]).acknowledges(2, ranks=[0])
    assert _steps(_required(trial.exits(by="fault").attempt().recovers(None))) == (None, [2])


@pytest.mark.parametrize(("node", "required"), [(0, 2), (1, 2), (2, 4)])
def test_local_level_is_lost_with_any_participants_node(node: int, required: int) -> None:
    """A save on node-local storage is lost with the storage of any node that took part; another node's doesn't matter."""
    trial = (
        TargetJournal()
        .attempt()
        .saves(2)
        .saves(4, "local")
        .exits(by="fault")
        .destroys("local", node, "local-storage-loss")
    )
    found = _required(trial.attempt().recovers(2))
    assert found.required is not None
    assert found.required.step == required
    assert found.permitted[0].step == 4


def test_local_save_that_was_drained_to_shared_survives() -> None:
    """Acknowledged at `local` first and at `shared` later, a save survives the loss of node-local storage."""
    trial = TargetJournal().attempt().saves(2).saves(4, "local").acknowledges(4, "shared").exits(by="fault")
    assert _steps(_required(trial.destroys("local", 0, "local-storage-loss").attempt().recovers(4)))[0] == 4


def test_each_rank_survives_on_a_tier_of_its_own() -> None:
    """The part of one rank may be on shared storage and that of another on the storage of a node that still has it."""
    trial = TargetJournal().attempt().starts_save(2).acknowledges(2, "shared", [0]).acknowledges(2, "local", [1])
    trial.exits(by="fault").destroys("local", 0, "local-storage-loss")
    assert _steps(_required(trial.attempt().recovers(2)))[0] == 2


def test_node_loss_within_and_outside_the_guarantees() -> None:
    """A target that doesn't promise to survive a node's loss owes nothing after one, and is still permitted everything."""
    for guarantees, required in ((("process-crash", "node-loss"), 4), (("process-crash",), None)):
        trial = TargetJournal(guarantees=guarantees).attempt().saves(2).saves(4).exits(by="fault")  # type: ignore[arg-type]
        found = _required(trial.destroys("local", 1, "node-loss", next_attempt=False).attempt().recovers(4))
        assert found.required == (found.permitted[0] if required else None)
        assert {save.step for save in found.permitted} >= {4}


def test_saves_after_a_fault_outside_the_guarantees_are_required_again() -> None:
    """Only what was there before such a fault is forgiven."""
    trial = (
        TargetJournal(guarantees=["process-crash"])
        .attempt()
        .saves(2)
        .exits(by="fault")
        .destroys("local", 1, "node-loss")
    )
    trial.attempt().recovers(2).saves(4).exits(by="fault")
    assert _steps(_required(trial.attempt().recovers(4)))[0] == 4


def test_shared_loss_leaves_nothing_to_recover() -> None:
    """All storage that the target ever acknowledged is gone: it must refuse, or may start where the scenario allows that."""
    for fresh_start, kind in (("refused", "must-refuse"), ("allowed", "may-start")):
        trial = TargetJournal(fresh_start=fresh_start).attempt().saves(2).exits(by="fault")
        found = _required(trial.destroys("shared", None, "shared-storage-loss").attempt().begins_recovery())
        assert (found.required, found.permitted, found.kind) == (None, (), kind)


def test_shared_loss_may_leave_a_local_copy() -> None:
    """A target with two tiers may still have the save on the other one; nothing is required, as no guarantee covers it."""
    trial = TargetJournal().attempt().saves(2, "local").acknowledges(2, "shared").exits(by="fault")
    found = _required(trial.destroys("shared", None, "shared-storage-loss").attempt().begins_recovery())
    assert (_steps(found), found.kind) == ((None, [2]), "may-recover")


def test_change_of_world_needs_its_guarantee() -> None:
    """Without the guarantee another number of ranks has to find nothing; back in the old world it has to find everything again."""
    for promised in (True, False):
        guarantees = ["process-crash", *(["world-size-change"] if promised else [])]
        trial = TargetJournal(guarantees=guarantees).attempt().saves(2).exits(by="fault")  # type: ignore[arg-type]
        trial.attempt((1,)).begins_recovery()
        assert _steps(_required(trial))[0] == (2 if promised else None)
        assert _steps(_required(trial.exits(1).attempt((1, 1)).begins_recovery()))[0] == 2


def test_local_parts_on_other_nodes_are_not_required_in_another_placement() -> None:
    """What lies on the node-local storage of two nodes can't be required of one node."""
    trial = TargetJournal().attempt().saves(2).saves(4, "local").exits(by="fault").attempt((2,)).begins_recovery()
    assert _steps(_required(trial))[0] == 2


def test_kill_of_ranks_needs_the_promise_to_survive_it() -> None:
    """Of a target that promises nothing, nothing is required after a kill, and everything after an orderly end."""
    for by, required in (("fault", None), ("self", 2)):
        trial = TargetJournal(guarantees=[]).attempt().saves(2).exits(0, by=by).attempt().recovers(2)
        assert _steps(_required(trial))[0] == required


def test_needs_of_a_fault_that_only_its_evidence_tells() -> None:
    """A plugin's fault says itself by which guarantee a checkpoint outlives it."""
    trial = (
        TargetJournal(guarantees=["process-crash"])
        .attempt()
        .saves(2)
        .fault("power", needs=("power-loss",))
        .exits(by="fault")
    )
    assert _steps(_required(trial.attempt().recovers(2)))[0] is None


def test_loss_of_storage_after_a_recovery_does_not_change_what_it_required() -> None:
    """What a later fault of the same attempt destroyed had been there when the attempt recovered."""
    trial = TargetJournal().attempt().saves(2).exits(by="fault").attempt().recovers(2).starts_save(4).exits(by="fault")
    trial.destroys("shared", None, "shared-storage-loss", next_attempt=False)
    assert _steps(_required(trial)) == (2, [2])


def test_same_step_of_a_later_attempt_is_another_save() -> None:
    """The later of two acknowledged saves of one step is the required one; the earlier isn't permitted by itself."""
    trial = TargetJournal().attempt().saves(4).exits(by="fault").attempt().recovers(4).saves(4).exits(by="fault")
    found = _required(trial.attempt().recovers(4))
    assert found.required is not None
    assert [save.key for save in found.permitted] == [found.required.key] == [(4, 1)]


def test_every_reason_comes_with_its_events() -> None:
    """Each save's standing names events of the journal that speak of that save."""
    trial = TargetJournal().attempt().saves(2).saves(4, "local").starts_save(6).exits(by="fault")
    trial.destroys("local", 0, "local-storage-loss")
    found = _required(trial.attempt().recovers(2))
    events = trial.journal().events
    assert [reason.save.step for reason in found.reasons] == [6, 4, 2]
    assert all(0 <= index < len(events) for reason in found.reasons for index in reason.evidence)
    assert any("destroyed" in reason.words for reason in found.reasons)
    assert any(type(events[index]).__name__ == "StorageDestroyed" for index in found.reasons[1].evidence)


@pytest.mark.parametrize("guarantees", [["process-crash", "integrity"], ["process-crash"]])
def test_damage_takes_the_requirement_not_the_permission(guarantees: list[Guarantee]) -> None:
    """After damage to a file at rest nothing saved before is required, whatever is promised; what is saved after it is."""
    trial = TargetJournal(guarantees=guarantees).attempt().saves(2).saves(4).exits(by="fault")
    trial.mutates("shared:step-000004/state.pt").attempt().recovers(2)
    found = _required(trial)
    assert (_steps(found), found.kind) == ((None, [4, 2]), "may-recover")
    assert any("was damaged (" in reason.words for reason in found.reasons)
    assert _steps(_required(trial.saves(6).exits(by="fault").attempt().recovers(6)))[0] == 6


def test_planted_files_and_changed_times_forgive_nothing() -> None:
    """What adds to storage or changes times only leaves every checkpoint required."""
    trial = TargetJournal().attempt().saves(2).exits(by="fault").mutates("shared:step-000099", "planted", damages=False)
    assert _steps(_required(trial.attempt().recovers(2)))[0] == 2


def test_save_that_is_tried_again_in_the_same_attempt() -> None:
    """Of two starts of one save the last counts: an acknowledgement of the first one isn't one of the second."""
    trial = (
        TargetJournal().attempt().saves(2).saves(4).fails_save(4, ranks=[1]).starts_save(4).acknowledges(4, ranks=[1])
    )
    trial.exits(by="fault")
    save = saves(TargetView(SCENARIO, trial.journal()))[-1]
    assert (save.step, save.status, sorted(save.acknowledged)) == (4, "indeterminate", [1])
    again = TargetJournal().attempt().starts_save(2).fails_save(2).saves(2).exits(by="fault").attempt().recovers(2)
    assert _steps(_required(again))[0] == 2


def test_overlapping_saves_acknowledged_in_any_order() -> None:
    """Each save counts by its own acknowledgements, whichever of several under way is told first."""
    trial = (
        TargetJournal(outstanding=2).attempt().starts_save(2).starts_save(4).acknowledges(4).acknowledges(2, ranks=[0])
    )
    found = _required(trial.exits(by="fault").attempt().recovers(4))
    assert _steps(found) == (4, [4])
    trial = (
        TargetJournal(outstanding=2).attempt().starts_save(2).starts_save(4).acknowledges(2).acknowledges(4, ranks=[0])
    )
    assert _steps(_required(trial.exits(by="fault").attempt().recovers(4))) == (2, [4, 2])


@pytest.mark.parametrize("at_end", ["close", "exit"])
def test_last_save_that_nobody_awaited_is_only_permitted(at_end: str) -> None:
    """A script that doesn't await its last save isn't told of it, so that nothing is required for it."""
    trial = (
        TargetJournal(at_end=at_end).attempt().saves(2).starts_save(6).finishes().ends("finished").attempt().recovers(2)
    )
    assert _steps(_required(trial)) == (2, [6, 2])


def _fell_back(*, forgiven: bool) -> TargetJournal:
    """Attempt 1 resumed from step 2, though step 4 was acknowledged, and was killed while it saved step 4 again."""
    trial = TargetJournal().attempt().saves(2).saves(4).exits(by="fault").attempt().begins_recovery()
    if forgiven:
        trial.injects("ENOENT")
    return trial.recovers(2, attempt=0).starts_save(4).exits(by="fault").attempt().recovers(2)


def test_branch_that_training_has_rightly_left() -> None:
    """A recovery that was entitled to fall back, and saved the step anew, has left the old save behind."""
    found = _required(_fell_back(forgiven=True))
    assert _steps(found) == (2, [4, 4, 2])
    assert any("rightly resumed from an older checkpoint" in reason.words for reason in found.reasons)


def test_branch_that_training_has_wrongly_left() -> None:
    """Without such a right the old save stays required."""
    found = _required(_fell_back(forgiven=False))
    assert found.required is not None
    assert found.required.key == (4, 0)


def test_rank_stopped_in_a_recovery_forgives_it() -> None:
    """SIGSTOP in a recovery harms it as a kill does; SIGSTOP in a save later on doesn't."""
    trial = TargetJournal().attempt().saves(2).exits(by="fault").attempt().begins_recovery()
    trial.fault("sigstop", at=operation(op="read"), needs=("process-crash",)).exits(by="harness").ends("hung")
    assert _steps(_required(trial))[0] is None
    trial = TargetJournal().attempt().saves(2).exits(by="fault").attempt().recovers(2).starts_save(4)
    trial.fault("sigstop", at=operation(), needs=("process-crash",)).exits(by="harness").ends("hung")
    assert _steps(_required(trial))[0] == 2


def test_killed_saver_child_is_a_crash() -> None:
    """A child killed beside a rank that lives on is what `process-crash` promises to survive, as the fault itself says."""
    for guarantees, required in ((["process-crash"], 2), ([], None)):
        trial = TargetJournal(guarantees=guarantees).attempt().saves(2).starts_save(4)  # type: ignore[arg-type]
        trial.fault("saver-kill", at=operation(), needs=("process-crash",))
        trial.raises("wait", "RuntimeError", "the saver process died").ends("failed")
        assert _steps(_required(trial.attempt().recovers(2)))[0] == required
