from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model import journal as j
from chaosckpt.model.verdict import Verdict, Violation
from chaosckpt.oracle import check, root_cause, same_failure
from tests.oracle.command_journals import MISSING, killed_in_save_4
from tests.oracle.journals import SCENARIO, TargetJournal, operation


def _cause(trial: TargetJournal) -> tuple[str, str, str, str, str]:
    journal = trial.journal()
    cause = root_cause(journal, check(SCENARIO, journal))
    return cause.invariant, cause.stage, cause.operation, cause.file_pattern, cause.error_type


def test_kill_at_an_operation() -> None:
    """The cause of a kill is its stage, operation and kind of file, the same for every step and rank."""
    expected = ("newest-complete", "persist", "write", "shared:step-#/__#_#.distcp", "nothing-chosen")
    for step in (4, 6):
        at = operation(path=f"shared:step-00000{step}/__1_0.distcp", rank=1)
        trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).cut(at, f"persist of save {step}")
        assert _cause(trial.attempt(closing=True).recovers(None).ends_well()) == expected


def test_last_destructive_fault_is_blamed() -> None:
    """Latency after the kill that did the harm is not to blame."""
    trial = TargetJournal(faults=[["cut"], ["latency"]]).attempt().recovers(None).saves(2)
    trial.cut(operation(op="unlink"), "commit of save 4").attempt()
    trial.fault("latency", at=operation(op="stat"), label="discover of the recovery").recovers(2).saves(4).finishes()
    trial.ends("finished").attempt(closing=True).recovers(None).ends_well()
    assert _cause(trial)[:3] == ("newest-complete", "commit", "unlink")


def test_kill_of_an_earlier_recovery_is_not_blamed_for_a_mix() -> None:
    """A rank killed while it read, one attempt earlier, left storage as it was: the kill in the save before is to blame."""
    trial = TargetJournal(faults=[["cut"], ["sigkill"]]).attempt().recovers(None).saves(2)
    trial.cut(operation(op="write"), "persist of save 4").attempt().begins_recovery()
    trial.fault("sigkill", at=operation(op="read"), label="load of the recovery").exits(by="fault").ends("killed")
    trial.attempt(closing=True).recovers(2, shown=0).ends_well()
    assert _cause(trial)[:3] == ("complete-only", "persist", "write")


def test_injected_error_is_blamed_for_what_follows() -> None:
    """An error injected into a save is the cause of the checkpoint that doesn't load."""
    trial = TargetJournal(faults=[["errno"]]).attempt().recovers(None).saves(2).starts_save(4)
    trial.injects("ENOSPC", operation(op="write"), "persist of save 4").acknowledges(4).finishes().ends("finished")
    trial.attempt(closing=True).recovers(2).ends_well()
    assert _cause(trial)[:3] == ("newest-complete", "persist", "write")


def test_lost_storage_is_named_by_its_kind() -> None:
    """A fault that struck no operation stands in the operation's place."""
    trial = (
        TargetJournal(faults=[["cut"], ["local-storage-loss"]])
        .attempt()
        .recovers(None)
        .saves(2)
        .saves(4, "local")
        .cut()
    )
    trial.destroys("local", 0, "local-storage-loss").attempt(closing=True).recovers(None).ends_well()
    assert _cause(trial) == ("newest-complete", "", "local-storage-loss", "", "nothing-chosen")


def test_violation_without_any_fault() -> None:
    """A fault-free violation has its invariant and its kind, no place."""
    trial = TargetJournal().attempt(closing=True).recovers(None).finishes(4).ends("finished")
    assert _cause(trial) == ("progress", "", "", "", "wrong-end")


def test_verdict_without_violation_has_no_cause() -> None:
    """Asking for the cause of a pass is misuse."""
    with pytest.raises(ValueError, match="pass"):
        root_cause(j.Journal(()), Verdict(outcome="pass"))


def test_error_before_an_acknowledgement_is_blamed_for_the_lie() -> None:
    """A kill after the acknowledgement is innocent of a checkpoint that an audit can't load."""
    trial = TargetJournal(faults=[["errno", "cut"]]).attempt().recovers(None).saves(2).starts_save(4)
    trial.injects("EIO", operation(op="fsync"), "persist of save 4").acknowledges(4).starts_save(6)
    trial.cut(operation(op="rename"), "commit of save 6").audits({2: 2, 4: "no such file"})
    assert _cause(trial.attempt(closing=True).recovers(6).ends_well()) == (
        "durable-acknowledgement",
        "persist",
        "fsync",
        "shared:step-#/__#_#.distcp",
        "OSError",
    )


def test_disturbed_storage_is_named_by_its_kind() -> None:
    """What a fault did to files between two attempts is to blame for what is loaded afterwards."""
    trial = TargetJournal(faults=[["cut"], ["bit-flip"]]).attempt().recovers(None).saves(2).cut()
    trial.mutates("shared:step-000002/state.pt")
    trial.events.append(j.FaultInjected(attempt=1, fault=0, kind="bit-flip", evidence="bit 3 of byte 100"))
    trial.attempt(closing=True).recovers(2, variant="torn").ends_well()
    assert _cause(trial)[:3] == ("complete-only", "", "bit-flip")


def test_stopped_rank_is_blamed() -> None:
    """A fault that says which promise it needs is to blame though no process ended by it."""
    trial = TargetJournal(faults=[["sigstop", "latency"]]).attempt().recovers(None).saves(2).starts_save(4)
    trial.fault("sigstop", at=operation(op="write"), label="persist of save 4", needs=("process-crash",))
    trial.fault("latency", 1, at=operation(op="stat"), label="persist of save 4").exits(by="harness").ends("hung")
    assert _cause(trial.attempt(closing=True).recovers(None).ends_well())[:3] == ("newest-complete", "persist", "write")


def test_change_of_world_is_blamed_for_what_is_lost_by_it() -> None:
    """Wherever the job was interrupted before: streams, data position and optimizer that another world lacks are its doing."""
    for label in ("persist of save 4", "commit of save 4"):
        trial = TargetJournal(faults=[["cut"], ["world-size"]]).attempt().recovers(None).saves(2).cut(label=label)
        trial.events.append(
            j.FaultInjected(
                attempt=1, fault=0, kind="world-size", evidence="1+1 became 1", needs=("world-size-change",)
            )
        )
        trial.attempt((1,), closing=True)
        trial.recovers(2, but=lambda digest: msgspec.structs.replace(digest, optimizer={})).ends_well()
        assert _cause(trial) == ("full-state", "", "world-size", "", "lost-optimizer")


def test_the_root_cause_is_where_the_fault_struck():
    """Violations are grouped by the operation, the file's kind and the error."""
    trial = killed_in_save_4().attempt(closing=True).fails(MISSING)
    cause = root_cause(trial.journal(), trial.verdict())
    assert str(cause) == "newest-complete / persist write out:ckpt-#.pt / FileNotFoundError"


def _violation(invariant: str, error_type: str, step: int | None = 6, seen: str = "") -> Violation:
    return Violation(invariant=invariant, sentence="", attempt=1, error_type=error_type, step=step, seen=seen)


@pytest.mark.parametrize(
    ("found", "same"),
    [
        (_violation("newest-complete", "KeyError"), True),
        (_violation("newest-complete", "KeyError", 4, "KeyError: 'optimizer'"), True),
        (_violation("newest-complete", "KeyError", 4, "KeyError: 'model'"), False),
        (_violation("newest-complete", "EOFError", 6, "EOFError"), False),
        (_violation("progress", "KeyError"), False),
    ],
)
def test_what_a_plain_restart_has_shown_is_known_again(found: Violation, same: bool) -> None:
    """A failure of one type about one step, or in the same words, needs no fault; any other one is looked into."""
    assert same_failure(_violation("newest-complete", "KeyError", 6, "KeyError: 'optimizer'"), found) is same


def test_a_step_that_no_audit_can_load_is_no_faults_doing() -> None:
    """Wrong state in an audit without faults is what a recovery of that step shows later, and of no other step."""
    audited = _violation("durable-acknowledgement", "wrong-state", 2)
    assert same_failure(audited, _violation("full-state", "lost-optimizer", 2))
    assert not same_failure(audited, _violation("full-state", "lost-optimizer", 4))
    assert not same_failure(audited, _violation("newest-complete", "nothing-chosen", 2))
