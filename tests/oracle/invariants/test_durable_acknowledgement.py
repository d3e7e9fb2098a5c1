from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model import journal as j
from chaosckpt.model.digest import StateDigest
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle import NotJudged, TargetView, check, explain
from chaosckpt.oracle.invariants.durable_acknowledgement import UNAUDITED, UNTRIED, durable_acknowledgement
from tests.oracle.command_journals import SAVED, UNSAID, CommandJournal
from tests.oracle.journals import SCENARIO, TargetJournal, operation
from tests.oracle.states import state

AT = operation(rank=1, op="fsync", path="shared:step-000004/rank-1.pt")


def struck(**more: object) -> TargetJournal:
    """Attempt 0 saved step 2, met an EIO in the save of step 4, acknowledged it all the same, and finished."""
    trial = TargetJournal(faults=[["errno"]], **more).attempt().recovers(None).saves(2).starts_save(4)  # type: ignore[arg-type]
    return trial.injects("EIO", AT, "persist of save 4").acknowledges(4).finishes(4).ends("finished")


def closes(trial: TargetJournal) -> TargetJournal:
    return trial.attempt(closing=True).recovers(4).ends_well()


def _found(trial: TargetJournal) -> Violation | None:
    verdict = check(SCENARIO, trial.journal())
    assert "durable-acknowledgement" in verdict.judged, verdict
    found = [
        v for v in (verdict.primary, *verdict.others) if v is not None and v.invariant == "durable-acknowledgement"
    ]
    assert len(found) < 2
    return found[0] if found else None


def test_error_that_was_put_right_is_tolerated() -> None:
    """An acknowledgement after an error is right where the checkpoint loads; the explanation says that it was tolerated."""
    trial = closes(struck().audits({2: 2, 4: 4}))
    assert _found(trial) is None
    text = explain(SCENARIO, trial.journal())
    assert "tolerated: a fault hit rank 1's first fsync of step-000004/rank-1.pt (EIO)" in text
    assert "step 4 saved in attempt 0" in text


def test_acknowledged_checkpoint_that_cannot_be_loaded() -> None:
    """The sentence names the injected error, and the error of the load."""
    found = _found(closes(struck().audits({2: 2, 4: "shared:step-000004/rank-1.pt is truncated"})))
    assert found is not None
    assert (found.step, found.attempt, found.error_type) == (4, 0, "OSError")
    assert "although a fault hit rank 1's first fsync of step-000004/rank-1.pt (EIO)" in found.sentence
    assert "rank 0 could not load it: OSError: shared:step-000004/rank-1.pt is truncated" in found.sentence
    assert found.path == "shared:step-000004/rank-1.pt"


@pytest.mark.parametrize("sharded", [False, True])
def test_acknowledged_checkpoint_that_loads_something_else(sharded: bool) -> None:
    """Another step's state, a damaged one, or one that lacks a part are all told."""

    def unscheduled(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, scheduler={"last_epoch": "int:0"})

    older = _found(closes(struck(sharded=sharded).audits({2: 2, 4: 2})))
    torn = _found(closes(struck(sharded=sharded).audits({4: 4}, variant="torn")))
    part = _found(closes(struck(sharded=sharded).audits({4: 4}, but=unscheduled)))
    assert older is not None
    assert "loaded is that of step 2 saved in attempt 0" in older.sentence
    assert torn is not None
    assert "not the state of any save" in torn.sentence
    assert part is not None
    assert "not that of step 4 saved in attempt 0: scheduler" in part.sentence


def test_newest_acknowledged_checkpoint_that_is_listed_no_more() -> None:
    """Retention may drop older ones, never the newest that was acknowledged."""
    assert _found(closes(struck().audits({4: 4}, asked=(2, 4)))) is None
    found = _found(closes(struck().audits({2: 2}, asked=(2, 4))))
    assert found is not None
    assert (found.step, found.error_type) == (4, "not-retained")
    assert "no longer lists this step" in found.sentence


def test_newest_acknowledged_checkpoint_that_a_newer_one_has_superseded() -> None:
    """A save that was committed, and failed only when it retired the one before it, has made that one needless."""
    view = TargetView(SCENARIO, closes(struck().audits({6: 6}, asked=(2, 4))).journal())
    assert isinstance(durable_acknowledgement.judge(view), NotJudged)


def test_the_same_checkpoint_is_told_once() -> None:
    """What can't be loaded after one attempt is not told again after the next."""
    trial = struck().audits({2: 2, 4: "no file"}).attempt(closing=True).recovers(2).saves(6).finishes().ends("finished")
    assert _found(trial.audits({2: 2, 4: "no file", 6: 6})) is not None


def test_rank_that_had_not_acknowledged() -> None:
    """What was never acknowledged by all owes nothing."""
    trial = TargetJournal(faults=[["errno"]]).attempt().recovers(None).saves(2).starts_save(4)
    trial.injects("EIO", AT, "persist of save 4").acknowledges(4, ranks=[0])
    trial.raises("wait", "OSError", "EIO", ranks=[1]).exits(1, ranks=[0]).ends("failed")
    assert _found(trial.audits({2: 2, 4: "no file"}).attempt(closing=True).recovers(2).ends_well()) is None


def test_damaged_or_destroyed_since() -> None:
    """After a file was damaged or storage lost, an audit says nothing about the target."""
    for harm in (
        lambda trial: trial.mutates("shared:step-000004/rank-1.pt"),
        lambda trial: trial.destroys("shared", None, "shared-storage-loss"),
    ):
        trial = harm(struck()).attempt(closing=True).recovers(4).saves(6).finishes().ends("finished")
        assert _found(trial.audits({4: "damaged", 6: 6})) is None


def test_step_that_a_later_attempt_saved_again() -> None:
    """The state that a later attempt captured for that step is as good."""
    trial = struck(fresh_start="allowed").audits({2: 2, 4: 4}).attempt(variant="b").begins_recovery()
    trial.injects("EIO", operation(op="read"), "load of the recovery")
    trial.recovers(2, variant="", attempt=0).starts_save(4).exits(by="fault").ends("killed")
    assert (
        _found(trial.audits({2: 2, 4: 4}, variant="").attempt(closing=True).recovers(4, variant="").ends_well()) is None
    )


@pytest.mark.parametrize(("newest", "wrong"), [(4, False), (2, True)])
def test_another_save_of_a_step_that_retention_has_removed(newest: int, wrong: bool) -> None:
    """A save that was never acknowledged may outlive the acknowledged one of its step, once a newer step has superseded that."""
    trial = TargetJournal(faults=[["cut"], ["errno"]]).attempt().recovers(None).starts_save(2).cut().ends("killed")
    trial.attempt(variant="b").begins_recovery().injects("EIO", operation(op="read"), "load of the recovery")
    trial.recovers(None).saves(2)
    for step in range(4, newest + 1, 2):
        trial.saves(step)
    trial.finishes(newest).ends("finished").audits({step: step for step in range(2, newest + 1, 2)})
    captured = {
        event.rank: event.digest for event in trial.events if isinstance(event, j.SaveStarted) and not event.attempt
    }
    trial.events = [
        msgspec.structs.replace(event, digest=captured[event.rank])
        if isinstance(event, j.Audited) and event.step == 2
        else event
        for event in trial.events
    ]
    trial.audits({2: 2}, as_of=2)  # where it was right
    found = _found(trial.attempt(closing=True, variant="b").recovers(newest, attempt=1).ends_well())
    assert (found is not None) is wrong


def test_audits_that_prove_nothing() -> None:
    """No audit, or one that hung, is no judgement, and the explanation says so."""
    trial = closes(struck().audits({4: "no file"}, outcome="hung"))
    view = TargetView(SCENARIO, trial.journal())
    found = durable_acknowledgement.judge(view)
    assert isinstance(found, NotJudged)
    assert found.reason.endswith("; the audit after attempt 0 hung, so it proves nothing")
    assert "the audit after attempt 0 hung, so it proves nothing" in explain(SCENARIO, trial.journal())
    assert isinstance(durable_acknowledgement.judge(TargetView(SCENARIO, closes(struck()).journal())), NotJudged)


def test_capture_of_another_world() -> None:
    """An audit in another world compares what is global."""
    trial = struck().attempt((1,), closing=True).recovers(4).saves(6).finishes().ends("finished")
    assert _found(trial.audits({4: 4, 6: 6})) is None
    assert state(4, 0, 1).world_size == 1


STRUCK_IN_2 = operation(rank=1, op="fsync", path="shared:step-000002/rank-1.pt")


def retired() -> TargetJournal:
    """Attempt 0 met an EIO in the save of step 2, acknowledged it all the same, and retired it before its end."""
    trial = TargetJournal(faults=[["errno"]]).attempt().recovers(None).starts_save(2)
    trial.injects("EIO", STRUCK_IN_2, "persist of save 2").acknowledges(2).saves(4)
    return trial.finishes(4).ends("finished").audits({4: 4}, asked=(2, 4))


def test_checkpoint_that_retention_removed_is_judged_by_the_moment_of_its_acknowledgement() -> None:
    """What the audit after the attempt can't see any more, the one of storage as it was then proves, or disproves."""
    assert _found(closes(retired().audits({2: 2}, as_of=2))) is None
    found = _found(closes(retired().audits({2: "no such file"}, as_of=2)))
    assert found is not None
    assert (found.step, found.attempt, found.error_type) == (2, 0, "OSError")
    assert "although a fault hit rank 1's first fsync of step-000002/rank-1.pt (EIO)" in found.sentence
    assert (
        "the audit of storage as it was when attempt 0 had acknowledged step 2 (shared) failed: rank 0"
        in found.sentence
    )
    unlisted = _found(closes(retired().audits({}, asked=(2,), as_of=2)))
    assert unlisted is not None
    assert unlisted.error_type == "not-retained"


def test_target_without_a_list_is_judged_by_what_recovery_then_chooses() -> None:
    """The step itself or a newer complete one is right; an older one, nothing, or a state that was never saved isn't."""
    assert _found(closes(retired().audits({2: 2}, as_of=2, chosen=2))) is None
    assert _found(closes(retired().audits({2: 4}, as_of=2, chosen=4))) is None
    for shown, chosen, slug in ((0, j.NOTHING, "nothing-chosen"), (0, 0, "older-checkpoint"), (4, 2, "wrong-state")):
        found = _found(closes(retired().audits({2: shown}, as_of=2, chosen=chosen)))
        assert found is not None
        assert found.error_type == slug, found


def test_acknowledgement_after_an_error_that_no_audit_tells_of() -> None:
    """It is a gap, which the verdict names; without an error, or where what fell is beyond the guarantees, it is none."""
    for trial in (retired(), retired().audits({2: 2}, as_of=2, outcome="hung")):
        journal = closes(trial).journal()
        verdict = check(SCENARIO, journal)
        assert verdict.outcome == "pass"
        assert "durable-acknowledgement" not in verdict.judged
        assert verdict.gaps == (f"durable-acknowledgement was not judged: {UNAUDITED}",)
        told = "step 2 was acknowledged after a fault hit rank 1's first fsync of step-000002/rank-1.pt (EIO), and no audit"
        assert told in explain(SCENARIO, journal)
    for trial in (
        TargetJournal().attempt().recovers(None).saves(2).saves(4).finishes(4).ends("finished"),
        struck(guarantees=()).exits(by="fault"),
    ):
        assert check(SCENARIO, closes(trial).journal()).gaps == ()


def erred_in_2(*left: int, torn: bool = False) -> CommandJournal:
    """A command met an EIO in its save of step 2 and reported it as saved all the same; it left these steps."""
    trial = CommandJournal(SAVED, faults=[["errno"]]).attempt()
    trial.injects("EIO", operation(path="out:ckpt-2.pt"), "persist of save 2").saves(2, 4, 6)
    trial.removes(*{2, 4, 6} - set(left))
    return (trial.tears(2) if torn else trial).finishes()


def test_command_that_reported_a_save_after_an_error() -> None:
    """What lies there as a golden run left it is judged; what retention removed, or what lies there otherwise, is a gap."""
    for trial, judged in (
        (erred_in_2(2, 4, 6), True),
        (erred_in_2(4, 6), False),
        (erred_in_2(2, 4, 6, torn=True), False),
    ):
        verdict = trial.attempt(closing=True).says_resumed(6).finishes().verdict()
        assert verdict.outcome == "pass", verdict
        assert ("durable-acknowledgement" in verdict.judged) is judged
        assert verdict.gaps == (() if judged else (f"durable-acknowledgement was not judged: {UNTRIED}",))
        told = [
            reason
            for reason in verdict.unjudged
            if "reported step 2 as saved after a fault hit rank 0's first" in reason
        ]
        assert bool(told) is not judged


def test_command_without_an_error_in_a_save_has_no_gap() -> None:
    """An error in a recovery or in retention says nothing of a save; without `--saved` nothing was promised."""
    for label in ("load of the recovery", "retire of save 2"):
        trial = (
            CommandJournal(SAVED, faults=[["errno"]]).attempt().injects("EIO", operation(path="out:ckpt-2.pt"), label)
        )
        verdict = trial.saves(2, 4).removes(2).finishes().attempt(closing=True).says_resumed(4).finishes().verdict()
        assert verdict.gaps == (), verdict
    unsaid = CommandJournal(UNSAID).attempt().saves(2, said=False).finishes().attempt(closing=True).says_resumed(2)
    assert any("name it with --saved" in reason for reason in unsaid.finishes().verdict().unjudged)
