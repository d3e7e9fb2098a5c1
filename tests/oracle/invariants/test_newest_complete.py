from __future__ import annotations

import pytest

from chaosckpt.oracle import check
from tests.oracle.command_journals import MISSING, SAVED, UNSAID, CommandJournal, killed_in_save_4
from tests.oracle.journals import SCENARIO, TargetJournal, all_violated, interrupted, operation, violated


def test_older_checkpoint_is_a_violation() -> None:
    """Resuming from step 2 when step 4 had been acknowledged breaks it; the sentence names rank, steps, and file."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).saves(4)
    verdict = check(SCENARIO, trial.cut(operation()).attempt(closing=True).recovers(2).ends_well().journal())
    assert verdict.primary is not None
    assert verdict.primary.invariant == "newest-complete"
    assert verdict.primary.error_type == "older-checkpoint"
    assert verdict.primary.path == "shared:step-000004/__0_0.distcp"
    for words in ("rank 0", "step 2 saved in attempt 0, an older", "had acknowledged step 4", "__0_0.distcp"):
        assert words in verdict.primary.sentence


def test_nothing_in_spite_of_an_acknowledgement_is_a_violation() -> None:
    """Beginning at step 0 when step 2 had been acknowledged breaks it, whatever the scenario says of fresh starts."""
    for fresh_start in ("refused", "allowed"):
        verdict = check(SCENARIO, interrupted(fresh_start=fresh_start).recovers(None).ends_well().journal())
        assert verdict.primary is not None
        assert (verdict.primary.invariant, verdict.primary.error_type) == ("newest-complete", "nothing-chosen")


def test_failure_to_recover_is_a_violation_of_its_own_kind() -> None:
    """An exception names the rank with an error of its own, not the peer that lost its connection by it."""
    trial = interrupted().begins_recovery()
    trial.raises("recover", "RuntimeError", "Connection closed by peer [127.0.0.1]:1234", ranks=[0])
    trial.raises("recover", "EOFError", "Ran out of input", ranks=[1]).ends("failed")
    verdict = check(SCENARIO, trial.journal())
    assert verdict.primary is not None
    assert (verdict.primary.invariant, verdict.primary.error_type) == ("newest-complete", "EOFError")
    assert verdict.primary.rank == 1
    assert [violation.invariant for violation in verdict.others] == ["always-recoverable"]


def test_process_that_just_ends_in_recovery_is_a_violation() -> None:
    """A rank that crashes in recovery without an exception has failed to recover, too."""
    verdict = check(SCENARIO, interrupted().begins_recovery().exits(-1).ends("failed").journal())
    assert verdict.primary is not None
    assert (verdict.primary.invariant, verdict.primary.error_type) == ("newest-complete", "silent-exit")


def test_failure_of_a_recovery_that_a_fault_struck_is_not_judged() -> None:
    """A recovery into which an error was injected may fail; the next one has to succeed."""
    trial = TargetJournal(faults=[["cut"], ["errno"]]).attempt().recovers(None).saves(2).cut()
    trial.attempt().begins_recovery().injects().raises("recover", "OSError", "Input/output error").ends("failed")
    passing = check(SCENARIO, trial.attempt(closing=True).recovers(2).ends_well().journal())
    assert passing.outcome == "pass", passing


def test_fallback_after_an_injected_error_is_allowed_but_an_empty_hand_is_not() -> None:
    """An error injected into recovery may cost the newest checkpoint; a silent step 0 stays a violation."""
    for chosen, outcome in ((2, "pass"), (None, "violation")):
        trial = TargetJournal(faults=[["cut"], ["errno"]]).attempt().recovers(None).saves(2).saves(4).cut()
        trial.attempt().begins_recovery().injects().recovers(chosen).saves(6).finishes().ends("finished")
        verdict = check(SCENARIO, trial.attempt(closing=True).recovers(6).finishes().ends("finished").journal())
        assert verdict.outcome == outcome, verdict
        assert verdict.primary is None or verdict.primary.invariant == "clear-failure"


def test_latency_in_a_recovery_excuses_no_older_choice() -> None:
    """A fault that harms nothing leaves the required checkpoint required."""
    trial = TargetJournal(faults=[["cut"], ["latency"]]).attempt().recovers(None).saves(2).saves(4).cut()
    trial.attempt().begins_recovery().fault("latency", at=operation(op="read")).recovers(2).saves(6)
    verdict = check(SCENARIO, trial.finishes().ends("finished").attempt(closing=True).recovers(6).ends_well().journal())
    assert verdict.primary is not None
    assert verdict.primary.invariant == "newest-complete"


def test_rank_killed_in_its_recovery_ends_the_judgement_of_that_attempt() -> None:
    """Peers of a rank that a fault killed inside recovery may fail as they like."""
    trial = TargetJournal(faults=[["cut"], ["sigkill"]]).attempt().recovers(None).saves(2).cut()
    trial.attempt().begins_recovery().fault("sigkill", at=operation(rank=1, op="read")).exits(by="fault", ranks=[1])
    trial.raises("recover", "RuntimeError", "Connection closed by peer", ranks=[0]).ends("killed")
    verdict = check(SCENARIO, trial.attempt(closing=True).recovers(2).ends_well().journal())
    assert verdict.outcome == "pass", verdict


@pytest.mark.parametrize("variant", ["", "other"])
def test_resave_of_the_same_step_counts_by_its_bytes(variant: str) -> None:
    """The older of two saves of one step is as good as the newer only where their bytes are equal."""
    trial = TargetJournal(faults=[["cut"], ["cut"]]).attempt().recovers(None).saves(2).saves(4).cut()
    trial.attempt(variant=variant).recovers(4, variant="", attempt=0).saves(4).cut()
    verdict = check(SCENARIO, trial.attempt(closing=True).recovers(4, attempt=0).ends_well().journal())
    assert verdict.outcome == ("pass" if variant == "" else "violation"), verdict
    assert verdict.primary is None or "older" in verdict.primary.error_type


def test_nothing_required_is_not_judged() -> None:
    """Without an acknowledged save there is nothing that recovery had to find."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).starts_save(2).cut()
    verdict = check(SCENARIO, trial.attempt(closing=True).recovers(None).ends_well().journal())
    assert verdict.outcome == "pass"
    assert "newest-complete" not in verdict.judged


def test_an_incomplete_directory_is_picked():
    """C2: killed before the last file of a save, it takes that directory and fails, in spite of the step before."""
    trial = killed_in_save_4().attempt(closing=True).fails(MISSING)
    assert violated(trial) == ("newest-complete", "FileNotFoundError")
    primary = trial.verdict().primary
    assert primary is not None
    assert "trainer_state.json" in primary.sentence
    assert "step 2" in primary.sentence
    assert primary.step == 2


def test_no_fallback_in_a_loop():
    """C3: launch after launch fails on the same remains; the job never ends."""
    trial = killed_in_save_4(faults=[["cut"], []]).attempt().fails(MISSING)
    trial.attempt(closing=True).fails(MISSING)
    assert all_violated(trial) == {"newest-complete", "progress"}


def test_a_torn_file_stops_the_job():
    """C6 with a loader that checks: an older one was there, and nothing falls back to it."""
    torn = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
    assert violated(killed_in_save_4().attempt(closing=True).fails(torn)) == ("newest-complete", "RuntimeError")


def test_the_limit_removes_the_wrong_one():
    """C16: with a limit the newest is removed, and an older one is resumed from."""
    trial = CommandJournal(SAVED).attempt().saves(2, 4).removes(4).cut(label="retire of save 6")
    trial.attempt(closing=True).says_resumed(2).saves(4, 6).finishes()
    assert violated(trial) == ("newest-complete", "not-what-was-said")


def test_an_older_one_is_chosen():
    """What was said to be saved is complete, and something older is resumed from; without --saved, too, once a later save began."""
    for judged in (SAVED, UNSAID):
        trial = CommandJournal(judged).attempt().saves(2, 4).tears(6).cut(label="persist of save 6")
        assert violated(trial.attempt(closing=True).says_resumed(2).saves(4, 6).finishes()) == (
            "newest-complete",
            "older-checkpoint",
        )


def test_said_too_early():
    """It says that a step is saved while the save goes on, and after a kill there is less."""
    trial = CommandJournal(SAVED).attempt().saves(2).says_saved(4).tears(4).cut()
    assert violated(trial.attempt(closing=True).says_resumed(2).saves(4, 6).finishes()) == (
        "newest-complete",
        "not-what-was-said",
    )


def test_a_silent_fresh_start():
    """C21: it begins anew though it was seen to resume, and says nothing."""
    for judged in (SAVED, UNSAID):
        trial = CommandJournal(judged).attempt().saves(2, 4).tears(6).cut(label="persist of save 6")
        assert violated(trial.attempt(closing=True).saves(2, 4, 6).finishes()) == ("newest-complete", "nothing-chosen")
