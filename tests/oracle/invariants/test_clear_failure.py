from __future__ import annotations

import pytest

from chaosckpt.oracle import check
from tests.oracle.journals import SCENARIO, Story, operation

LOST = "shared-storage-loss"
CLEAR = "there is no complete checkpoint to resume from: looked for shared/step-*/.metadata"


def _bare(**more: object) -> Story:
    """Step 2 was acknowledged, and all shared storage is gone when the closing attempt is told to resume."""
    story = Story(faults=[["cut"], [LOST]], **more).attempt().recovers(None).saves(2).cut()  # type: ignore[arg-type]
    story.destroys("shared", None, LOST)
    return story.attempt(closing=True)


def _kinds(story: Story) -> list[tuple[str, str]]:
    verdict = check(SCENARIO, story.journal())
    return [(v.invariant, v.error_type) for v in ([verdict.primary] if verdict.primary else []) + list(verdict.others)]


def test_clear_refusal_passes() -> None:
    """With nothing left, an error that names the place, on every rank, is right, and ends the trial well."""
    story = _bare().begins_recovery().raises("recover", "CheckpointError", CLEAR).ends("failed")
    verdict = check(SCENARIO, story.journal())
    assert verdict.outcome == "pass", verdict
    assert "clear-failure" in verdict.judged


def test_silent_start_at_step_0() -> None:
    """Beginning anew under RESUME is a violation, unless the scenario allows it."""
    assert _kinds(_bare().recovers(None).ends_well())[0] == ("clear-failure", "silent-start")
    assert check(SCENARIO, _bare(fresh_start="allowed").recovers(None).ends_well().journal()).outcome == "pass"


def test_exit_0() -> None:
    """A refusal with exit code 0 looks like success to a scheduler."""
    story = _bare().begins_recovery().raises("recover", "SystemExit", CLEAR, code=0).ends("finished")
    assert _kinds(story)[0] == ("clear-failure", "exit-0")


@pytest.mark.parametrize("message", ["'NoneType' object has no attribute 'get'", "", "max() arg is an empty sequence"])
def test_error_that_names_nothing(message: str) -> None:
    """An accidental exception doesn't tell a person what was looked for."""
    story = _bare().begins_recovery().raises("recover", "ValueError", message).ends("failed")
    assert _kinds(story)[0] == ("clear-failure", "ValueError")


def test_peer_of_a_clear_refusal_is_excused_and_not_that_of_an_unclear_one() -> None:
    """A rank that only lost its peer is excused where the peer said what was looked for."""
    for message, expected in ((CLEAR, []), ("oops", ["RuntimeError", "ValueError"])):
        story = _bare().begins_recovery().raises("recover", "RuntimeError", "Connection closed by peer", ranks=[0])
        story.raises("recover", "ValueError", message, ranks=[1]).ends("failed")
        assert [kind for _, kind in _kinds(story)] == expected


def test_hang_in_recovery() -> None:
    """A recovery that hangs, confirmed, is a violation whether or not something was required."""
    bare = _bare().begins_recovery().exits(by="harness").ends("hung", confirmed=True)
    full = Story(faults=[["cut"]]).attempt().recovers(None).saves(2).cut().attempt(closing=True).recovers(2, ranks=[0])
    full.begins_recovery(ranks=[1]).exits(by="harness").ends("hung", confirmed=True)
    assert _kinds(bare) == [("clear-failure", "hang")]
    assert _kinds(full) == [("clear-failure", "hang")]


def test_hang_after_an_injected_error() -> None:
    """An error in recovery has to be reported; hanging on it for ever is a violation, also before the closing attempt."""
    story = Story(faults=[["cut"], ["errno"]]).attempt().recovers(None).saves(2).cut()
    story.attempt().begins_recovery().injects().exits(by="harness").ends("hung", confirmed=True)
    assert _kinds(story.attempt(closing=True).recovers(2).ends_well()) == [("clear-failure", "hang")]


def test_refusal_under_a_broken_guarantee() -> None:
    """A fault outside the guarantees may cost the checkpoint: refusing clearly is right, and so is recovering it."""
    for recovers in (True, False):
        story = Story(faults=[["node-loss"]], guarantees=["process-crash"]).attempt().recovers(None).saves(2)
        story.exits(by="fault", ranks=[1]).destroys("local", 1, "node-loss", next_attempt=False)
        story.exits(1, ranks=[0]).ends("killed").attempt(closing=True)
        if recovers:
            story.recovers(2).ends_well()
        else:
            story.begins_recovery().raises("recover", "CheckpointError", CLEAR).ends("failed")
        verdict = check(SCENARIO, story.journal())
        assert verdict.outcome == "pass", verdict


def test_error_after_an_injected_one_need_not_name_the_checkpoint() -> None:
    """What the kernel says of an injected error has no path; the exit code still counts."""
    for code, outcome in ((1, "pass"), (0, "violation")):
        story = Story(faults=[["cut"], ["errno"]]).attempt().recovers(None).saves(2).cut().attempt().begins_recovery()
        story.injects(at=operation(op="read")).raises("recover", "OSError", "[Errno 5] Input/output error", code=code)
        verdict = check(SCENARIO, story.ends("failed").attempt(closing=True).recovers(2).ends_well().journal())
        assert verdict.outcome == outcome, verdict


def test_damage_excuses_the_words_only_where_it_was_never_promised_to_be_noticed() -> None:
    """A target that claims integrity names what it refuses; another may let its libraries complain."""
    for promised, outcome in ((True, "violation"), (False, "pass")):
        guarantees = ["process-crash", *(["integrity"] if promised else [])]
        story = Story(faults=[["cut"]], guarantees=guarantees).attempt().recovers(None).saves(2).cut()  # type: ignore[arg-type]
        story.mutates("shared:step-000002/state.pt").attempt(closing=True).begins_recovery()
        story.raises("recover", "RuntimeError", "unexpected position").ends("failed")
        verdict = check(SCENARIO, story.journal())
        assert verdict.outcome == outcome, verdict
        assert "progress" not in verdict.judged


def test_recovery_in_which_a_rank_was_stopped() -> None:
    """A rank that a fault stopped, and peers that wait for it, are no hang of the target's."""
    story = Story(faults=[["cut"], ["sigstop"]]).attempt().recovers(None).saves(2).cut().attempt().begins_recovery()
    story.fault("sigstop", at=operation(op="read"), needs=("process-crash",))
    story.exits(by="harness").ends("hung", confirmed=True)
    verdict = check(SCENARIO, story.attempt(closing=True).recovers(2).ends_well().journal())
    assert verdict.outcome == "pass", verdict
