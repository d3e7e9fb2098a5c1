from __future__ import annotations

import pytest

from chaosckpt.model.guarantee import Guarantee
from chaosckpt.oracle.saves import saves
from chaosckpt.oracle.truth import Owed, owed
from chaosckpt.oracle.view import TrialView
from tests.oracle.journals import SCENARIO, Story, operation


def _owed(story: Story) -> Owed:
    view = TrialView(SCENARIO, story.journal())
    return owed(view, view.attempts[-1])


def _steps(found: Owed) -> tuple[int | None, list[int]]:
    return found.required.step if found.required else None, [save.step for save in found.permitted]


def test_acknowledged_by_every_rank_is_required() -> None:
    """The newest save acknowledged by all is required; it and newer started ones are permitted, newest first."""
    story = Story().attempt().saves(2).saves(4).starts_save(6).acknowledges(6, ranks=[0])
    found = _owed(story.exits(by="fault").attempt(closing=True).recovers(4))
    assert _steps(found) == (4, [6, 4])
    assert found.duty == "must-recover"


def test_status_of_saves() -> None:
    """All started and all acknowledged; a participant dead before it; or still under way."""
    story = Story().attempt().saves(2).starts_save(4).acknowledges(4, ranks=[0]).starts_save(6, ranks=[0])
    running = {save.step: save.status for save in saves(TrialView(SCENARIO, story.journal()))}
    ended = {save.step: save.status for save in saves(TrialView(SCENARIO, story.exits(by="fault").journal()))}
    assert running == {2: "acknowledged", 4: "started", 6: "started"}
    assert ended == {2: "acknowledged", 4: "indeterminate", 6: "indeterminate"}


def test_acknowledged_by_all_but_not_started_by_all_is_not_acknowledged() -> None:
    """Every rank of the attempt's world has to have started the save."""
    story = Story().attempt().starts_save(2, ranks=[0]).acknowledges(2, ranks=[0])
    assert _steps(_owed(story.exits(by="fault").attempt().recovers(None))) == (None, [2])


@pytest.mark.parametrize(("node", "required"), [(0, 2), (1, 2), (2, 4)])
def test_local_level_is_lost_with_any_participants_node(node: int, required: int) -> None:
    """A save on node-local storage is lost with the storage of any node that took part; another node's doesn't matter."""
    story = Story().attempt().saves(2).saves(4, "local").exits(by="fault").destroys("local", node, "local-storage-loss")
    found = _owed(story.attempt().recovers(2))
    assert found.required is not None
    assert found.required.step == required
    assert found.permitted[0].step == 4


def test_local_save_that_was_drained_to_shared_survives() -> None:
    """Acknowledged at `local` first and at `shared` later, a save survives the loss of node-local storage."""
    story = Story().attempt().saves(2).saves(4, "local").acknowledges(4, "shared").exits(by="fault")
    assert _steps(_owed(story.destroys("local", 0, "local-storage-loss").attempt().recovers(4)))[0] == 4


def test_each_rank_survives_on_a_tier_of_its_own() -> None:
    """The part of one rank may be on shared storage and that of another on the storage of a node that still has it."""
    story = Story().attempt().starts_save(2).acknowledges(2, "shared", [0]).acknowledges(2, "local", [1])
    story.exits(by="fault").destroys("local", 0, "local-storage-loss")
    assert _steps(_owed(story.attempt().recovers(2)))[0] == 2


def test_node_loss_within_and_outside_the_guarantees() -> None:
    """A target that doesn't promise to survive a node's loss owes nothing after one, and is still permitted everything."""
    for guarantees, required in ((("process-crash", "node-loss"), 4), (("process-crash",), None)):
        story = Story(guarantees=guarantees).attempt().saves(2).saves(4).exits(by="fault")  # type: ignore[arg-type]
        found = _owed(story.destroys("local", 1, "node-loss", next_attempt=False).attempt().recovers(4))
        assert found.required == (found.permitted[0] if required else None)
        assert {save.step for save in found.permitted} >= {4}


def test_saves_after_a_fault_outside_the_guarantees_are_owed_again() -> None:
    """Only what was there before such a fault is forgiven."""
    story = Story(guarantees=["process-crash"]).attempt().saves(2).exits(by="fault").destroys("local", 1, "node-loss")
    story.attempt().recovers(2).saves(4).exits(by="fault")
    assert _steps(_owed(story.attempt().recovers(4)))[0] == 4


def test_shared_loss_leaves_nothing_to_recover() -> None:
    """All storage that the target ever acknowledged is gone: it must refuse, or may start where the scenario allows that."""
    for fresh_start, duty in (("refused", "must-refuse"), ("allowed", "may-start")):
        story = Story(fresh_start=fresh_start).attempt().saves(2).exits(by="fault")
        found = _owed(story.destroys("shared", None, "shared-storage-loss").attempt().begins_recovery())
        assert (found.required, found.permitted, found.duty) == (None, (), duty)


def test_shared_loss_may_leave_a_local_copy() -> None:
    """A target with two tiers may still have the save on the other one; nothing is owed, as no guarantee covers it."""
    story = Story().attempt().saves(2, "local").acknowledges(2, "shared").exits(by="fault")
    found = _owed(story.destroys("shared", None, "shared-storage-loss").attempt().begins_recovery())
    assert (_steps(found), found.duty) == ((None, [2]), "may-recover")


def test_change_of_world_needs_its_guarantee() -> None:
    """Without the guarantee another number of ranks is owed nothing; back in the old world it is owed everything again."""
    for promised in (True, False):
        guarantees = ["process-crash", *(["world-size-change"] if promised else [])]
        story = Story(guarantees=guarantees).attempt().saves(2).exits(by="fault")  # type: ignore[arg-type]
        story.attempt((1,)).begins_recovery()
        assert _steps(_owed(story))[0] == (2 if promised else None)
        assert _steps(_owed(story.exits(1).attempt((1, 1)).begins_recovery()))[0] == 2


def test_local_parts_on_other_nodes_are_not_owed_in_another_placement() -> None:
    """What lies on the node-local storage of two nodes can't be required of one node."""
    story = Story().attempt().saves(2).saves(4, "local").exits(by="fault").attempt((2,)).begins_recovery()
    assert _steps(_owed(story))[0] == 2


def test_kill_of_ranks_needs_the_promise_to_survive_it() -> None:
    """A target that promises nothing owes nothing after a kill, and is owed for an orderly end."""
    for by, required in (("fault", None), ("self", 2)):
        story = Story(guarantees=[]).attempt().saves(2).exits(0, by=by).attempt().recovers(2)
        assert _steps(_owed(story))[0] == required


def test_needs_of_a_fault_that_only_its_evidence_tells() -> None:
    """A plugin's fault says itself by which guarantee a checkpoint outlives it."""
    story = (
        Story(guarantees=["process-crash"]).attempt().saves(2).fault("power", needs=("power-loss",)).exits(by="fault")
    )
    assert _steps(_owed(story.attempt().recovers(2)))[0] is None


def test_loss_of_storage_after_a_recovery_does_not_change_what_it_owed() -> None:
    """What a later fault of the same attempt destroyed had been there when the attempt recovered."""
    story = Story().attempt().saves(2).exits(by="fault").attempt().recovers(2).starts_save(4).exits(by="fault")
    story.destroys("shared", None, "shared-storage-loss", next_attempt=False)
    assert _steps(_owed(story)) == (2, [2])


def test_same_step_of_a_later_attempt_is_another_save() -> None:
    """The later of two acknowledged saves of one step is the required one; the earlier isn't permitted by itself."""
    story = Story().attempt().saves(4).exits(by="fault").attempt().recovers(4).saves(4).exits(by="fault")
    found = _owed(story.attempt().recovers(4))
    assert found.required is not None
    assert [save.key for save in found.permitted] == [found.required.key] == [(4, 1)]


def test_every_reason_comes_with_its_events() -> None:
    """Each save's standing names events of the journal that speak of that save."""
    story = Story().attempt().saves(2).saves(4, "local").starts_save(6).exits(by="fault")
    story.destroys("local", 0, "local-storage-loss")
    found = _owed(story.attempt().recovers(2))
    events = story.journal().events
    assert [reason.save.step for reason in found.reasons] == [6, 4, 2]
    assert all(0 <= index < len(events) for reason in found.reasons for index in reason.evidence)
    assert any("destroyed" in reason.words for reason in found.reasons)
    assert any(type(events[index]).__name__ == "StorageDestroyed" for index in found.reasons[1].evidence)


@pytest.mark.parametrize("guarantees", [["process-crash", "integrity"], ["process-crash"]])
def test_damage_takes_the_duty_not_the_permission(guarantees: list[Guarantee]) -> None:
    """After damage to a file at rest nothing saved before is owed, whatever is promised; what is saved after it is."""
    story = Story(guarantees=guarantees).attempt().saves(2).saves(4).exits(by="fault")
    story.mutates("shared:step-000004/state.pt").attempt().recovers(2)
    found = _owed(story)
    assert (_steps(found), found.duty) == ((None, [4, 2]), "may-recover")
    assert any("was damaged on storage" in reason.words for reason in found.reasons)
    assert _steps(_owed(story.saves(6).exits(by="fault").attempt().recovers(6)))[0] == 6


def test_planted_files_and_changed_times_forgive_nothing() -> None:
    """What adds to storage or changes times only leaves every checkpoint owed."""
    story = Story().attempt().saves(2).exits(by="fault").mutates("shared:step-000099", "planted", damages=False)
    assert _steps(_owed(story.attempt().recovers(2)))[0] == 2


def test_save_that_is_tried_again_in_the_same_attempt() -> None:
    """Of two starts of one save the last counts: an acknowledgement of the first one isn't one of the second."""
    story = Story().attempt().saves(2).saves(4).fails_save(4, ranks=[1]).starts_save(4).acknowledges(4, ranks=[1])
    story.exits(by="fault")
    save = saves(TrialView(SCENARIO, story.journal()))[-1]
    assert (save.step, save.status, sorted(save.acknowledged)) == (4, "indeterminate", [1])
    again = Story().attempt().starts_save(2).fails_save(2).saves(2).exits(by="fault").attempt().recovers(2)
    assert _steps(_owed(again))[0] == 2


def test_overlapping_saves_acknowledged_in_any_order() -> None:
    """Each save counts by its own acknowledgements, whichever of several under way is told first."""
    story = Story(outstanding=2).attempt().starts_save(2).starts_save(4).acknowledges(4).acknowledges(2, ranks=[0])
    found = _owed(story.exits(by="fault").attempt().recovers(4))
    assert _steps(found) == (4, [4])
    story = Story(outstanding=2).attempt().starts_save(2).starts_save(4).acknowledges(2).acknowledges(4, ranks=[0])
    assert _steps(_owed(story.exits(by="fault").attempt().recovers(4))) == (2, [4, 2])


@pytest.mark.parametrize("at_end", ["close", "exit"])
def test_last_save_that_nobody_awaited_is_only_permitted(at_end: str) -> None:
    """A script that doesn't await its last save isn't told of it, so that nothing is owed for it."""
    story = Story(at_end=at_end).attempt().saves(2).starts_save(6).finishes().ends("finished").attempt().recovers(2)
    assert _steps(_owed(story)) == (2, [6, 2])


def _fell_back(*, forgiven: bool) -> Story:
    """Attempt 1 resumed from step 2, though step 4 was acknowledged, and was killed while it saved step 4 again."""
    story = Story().attempt().saves(2).saves(4).exits(by="fault").attempt().begins_recovery()
    if forgiven:
        story.injects("ENOENT")
    return story.recovers(2, attempt=0).starts_save(4).exits(by="fault").attempt().recovers(2)


def test_branch_that_training_has_rightly_left() -> None:
    """A recovery that was entitled to fall back, and saved the step anew, has left the old save behind."""
    found = _owed(_fell_back(forgiven=True))
    assert _steps(found) == (2, [4, 4, 2])
    assert any("entitled to resume from an older one" in reason.words for reason in found.reasons)


def test_branch_that_training_has_wrongly_left() -> None:
    """Without such a right the old save stays required."""
    found = _owed(_fell_back(forgiven=False))
    assert found.required is not None
    assert found.required.key == (4, 0)


def test_rank_stopped_in_a_recovery_forgives_it() -> None:
    """SIGSTOP in a recovery harms it as a kill does; SIGSTOP in a save later on doesn't."""
    story = Story().attempt().saves(2).exits(by="fault").attempt().begins_recovery()
    story.fault("sigstop", at=operation(op="read"), needs=("process-crash",)).exits(by="harness").ends("hung")
    assert _steps(_owed(story))[0] is None
    story = Story().attempt().saves(2).exits(by="fault").attempt().recovers(2).starts_save(4)
    story.fault("sigstop", at=operation(), needs=("process-crash",)).exits(by="harness").ends("hung")
    assert _steps(_owed(story))[0] == 2


def test_killed_saver_child_is_a_crash() -> None:
    """A child killed beside a rank that lives on is what `process-crash` promises to survive, as the fault itself says."""
    for guarantees, required in ((["process-crash"], 2), ([], None)):
        story = Story(guarantees=guarantees).attempt().saves(2).starts_save(4)  # type: ignore[arg-type]
        story.fault("saver-kill", at=operation(), needs=("process-crash",))
        story.raises("wait", "RuntimeError", "the saver process died").ends("failed")
        assert _steps(_owed(story.attempt().recovers(2)))[0] == required
