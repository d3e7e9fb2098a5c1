from __future__ import annotations

import pytest

from chaosckpt.oracle import check
from tests.oracle.command_journals import SAVED, CommandJournal
from tests.oracle.journals import SCENARIO, TargetJournal, all_violated, operation, violated

LOST = "shared-storage-loss"
CLEAR = "there is no complete checkpoint to resume from: looked for shared/step-*/.metadata"


def _left_without(**more: object) -> TargetJournal:
    """Step 2 was acknowledged, and all shared storage is gone when the closing attempt is told to resume."""
    trial = TargetJournal(faults=[["cut"], [LOST]], **more).attempt().recovers(None).saves(2).cut()  # type: ignore[arg-type]
    trial.destroys("shared", None, LOST)
    return trial.attempt(closing=True)


def _kinds(trial: TargetJournal) -> list[tuple[str, str]]:
    verdict = check(SCENARIO, trial.journal())
    return [(v.invariant, v.error_type) for v in ([verdict.primary] if verdict.primary else []) + list(verdict.others)]


def test_clear_refusal_passes() -> None:
    """With nothing left, an error that names the place, on every rank, is right, and ends the trial well."""
    trial = _left_without().begins_recovery().raises("recover", "CheckpointError", CLEAR).ends("failed")
    verdict = check(SCENARIO, trial.journal())
    assert verdict.outcome == "pass", verdict
    assert "clear-failure" in verdict.judged


def test_silent_start_at_step_0() -> None:
    """Beginning anew under RESUME is a violation, unless the scenario allows it."""
    assert _kinds(_left_without().recovers(None).ends_well())[0] == ("clear-failure", "silent-start")
    assert check(SCENARIO, _left_without(fresh_start="allowed").recovers(None).ends_well().journal()).outcome == "pass"


def test_exit_0() -> None:
    """A refusal with exit code 0 looks like success to a scheduler."""
    trial = _left_without().begins_recovery().raises("recover", "SystemExit", CLEAR, code=0).ends("finished")
    assert _kinds(trial)[0] == ("clear-failure", "exit-0")


@pytest.mark.parametrize("message", ["'NoneType' object has no attribute 'get'", "", "max() arg is an empty sequence"])
def test_error_that_names_nothing(message: str) -> None:
    """An accidental exception doesn't tell a person what was looked for."""
    trial = _left_without().begins_recovery().raises("recover", "ValueError", message).ends("failed")
    assert _kinds(trial)[0] == ("clear-failure", "ValueError")


def test_peer_of_a_clear_refusal_is_excused_and_not_that_of_an_unclear_one() -> None:
    """A rank that only lost its peer is excused where the peer said what was looked for."""
    for message, expected in ((CLEAR, []), ("oops", ["RuntimeError", "ValueError"])):
        trial = (
            _left_without().begins_recovery().raises("recover", "RuntimeError", "Connection closed by peer", ranks=[0])
        )
        trial.raises("recover", "ValueError", message, ranks=[1]).ends("failed")
        assert [kind for _, kind in _kinds(trial)] == expected


def test_hang_in_recovery() -> None:
    """A recovery that hangs, confirmed, is a violation whether or not something was required."""
    bare = _left_without().begins_recovery().exits(by="harness").ends("hung", confirmed=True)
    full = (
        TargetJournal(faults=[["cut"]])
        .attempt()
        .recovers(None)
        .saves(2)
        .cut()
        .attempt(closing=True)
        .recovers(2, ranks=[0])
    )
    full.begins_recovery(ranks=[1]).exits(by="harness").ends("hung", confirmed=True)
    assert _kinds(bare) == [("clear-failure", "hang")]
    assert _kinds(full) == [("clear-failure", "hang")]


def test_hang_after_an_injected_error() -> None:
    """An error in recovery has to be reported; hanging on it for ever is a violation, also before the closing attempt."""
    trial = TargetJournal(faults=[["cut"], ["errno"]]).attempt().recovers(None).saves(2).cut()
    trial.attempt().begins_recovery().injects().exits(by="harness").ends("hung", confirmed=True)
    assert _kinds(trial.attempt(closing=True).recovers(2).ends_well()) == [("clear-failure", "hang")]


def test_refusal_under_a_broken_guarantee() -> None:
    """A fault outside the guarantees may cost the checkpoint: refusing clearly is right, and so is recovering it."""
    for recovers in (True, False):
        trial = TargetJournal(faults=[["node-loss"]], guarantees=["process-crash"]).attempt().recovers(None).saves(2)
        trial.exits(by="fault", ranks=[1]).destroys("local", 1, "node-loss", next_attempt=False)
        trial.exits(1, ranks=[0]).ends("killed").attempt(closing=True)
        if recovers:
            trial.recovers(2).ends_well()
        else:
            trial.begins_recovery().raises("recover", "CheckpointError", CLEAR).ends("failed")
        verdict = check(SCENARIO, trial.journal())
        assert verdict.outcome == "pass", verdict


def test_error_after_an_injected_one_need_not_name_the_checkpoint() -> None:
    """What the kernel says of an injected error has no path; the exit code still counts."""
    for code, outcome in ((1, "pass"), (0, "violation")):
        trial = (
            TargetJournal(faults=[["cut"], ["errno"]])
            .attempt()
            .recovers(None)
            .saves(2)
            .cut()
            .attempt()
            .begins_recovery()
        )
        trial.injects(at=operation(op="read")).raises("recover", "OSError", "[Errno 5] Input/output error", code=code)
        verdict = check(SCENARIO, trial.ends("failed").attempt(closing=True).recovers(2).ends_well().journal())
        assert verdict.outcome == outcome, verdict


def test_damage_excuses_the_words_only_where_it_was_never_promised_to_be_noticed() -> None:
    """A target that claims integrity names what it refuses; another may let its libraries complain."""
    for promised, outcome in ((True, "violation"), (False, "pass")):
        guarantees = ["process-crash", *(["integrity"] if promised else [])]
        trial = TargetJournal(faults=[["cut"]], guarantees=guarantees).attempt().recovers(None).saves(2).cut()  # type: ignore[arg-type]
        trial.mutates("shared:step-000002/state.pt").attempt(closing=True).begins_recovery()
        trial.raises("recover", "RuntimeError", "unexpected position").ends("failed")
        verdict = check(SCENARIO, trial.journal())
        assert verdict.outcome == outcome, verdict
        assert "progress" not in verdict.judged


def test_recovery_in_which_a_rank_was_stopped() -> None:
    """A rank that a fault stopped, and peers that wait for it, are no hang of the target's."""
    trial = (
        TargetJournal(faults=[["cut"], ["sigstop"]]).attempt().recovers(None).saves(2).cut().attempt().begins_recovery()
    )
    trial.fault("sigstop", at=operation(op="read"), needs=("process-crash",))
    trial.exits(by="harness").ends("hung", confirmed=True)
    verdict = check(SCENARIO, trial.attempt(closing=True).recovers(2).ends_well().journal())
    assert verdict.outcome == "pass", verdict


def test_an_error_that_names_nothing():
    """With nothing complete to resume from the error has to name the checkpoint."""
    trial = (
        CommandJournal(SAVED).attempt().tears(2).cut(label="persist of save 2").attempt(closing=True).fails("EOFError")
    )
    assert violated(trial) == ("clear-failure", "EOFError")


TORCHRUN = """[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/me/train.py", line 28, in <module>
[rank1]:     torch.set_rng_state(torch.load(f"{out}/ckpt-{newest}/rng-{rank}.pt"))
[rank1]:   File "/lib/python3.11/site-packages/torch/serialization.py", line 1568, in load
[rank1]: EOFError: Ran out of input
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/me/train.py", line 45, in <module>
[rank0]: RuntimeError: [/__w/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:25829. Check the logs.
W1130 01:42:27.177000 5440 torch/distributed/elastic/api.py:1028] Sending process 5529 closing signal SIGTERM
E1130 01:42:27.361000 5440 torch/distributed/elastic/api.py:1002] failed (exitcode: 1) local_rank: 1 of binary: /usr/bin/python
Traceback (most recent call last):
  File "/usr/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
Root Cause (first observed failure):
  exitcode  : 1 (pid: 5530)
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


def test_what_torchrun_says_of_its_ranks_names_no_checkpoint():
    """The rank's own error counts, not that of the one that lost it as its peer, nor the paths and pages that torchrun tells."""
    trial = (
        CommandJournal(SAVED).attempt().tears(2).cut(label="persist of save 2").attempt(closing=True).fails(TORCHRUN)
    )
    assert violated(trial) == ("clear-failure", "EOFError")
    primary = trial.verdict().primary
    assert primary is not None
    assert "Ran out of input" in primary.sentence
    named = TORCHRUN.replace("Ran out of input", "Ran out of input: '/o/out/ckpt-2/rng-1.pt'")
    assert "clear-failure" not in all_violated(
        CommandJournal(SAVED).attempt().tears(2).cut(label="persist of save 2").attempt(closing=True).fails(named)
    )
    trial = CommandJournal(SAVED).attempt().tears(2).cut(label="persist of save 2").attempt(closing=True)
    assert violated(trial.fails("RuntimeError: /o/out/ckpt-2.pt is torn")) == ("progress", "RuntimeError")
