from __future__ import annotations

import pytest

from chaosckpt.model import journal as j
from chaosckpt.oracle import Invariant, TrialView, check
from chaosckpt.oracle.precedence import BUILT_IN
from tests.oracle.journals import SCENARIO, Story, interrupted, operation


def test_control_trial_passes() -> None:
    """A trial without faults that starts, trains, saves and ends passes, though nothing was to be recovered."""
    verdict = check(SCENARIO, Story().attempt(closing=True).recovers(None).saves(2).saves(4).ends_well().journal())
    assert verdict.outcome == "pass", verdict
    assert "progress" in verdict.judged


@pytest.mark.parametrize("chosen", [2, 4])
@pytest.mark.parametrize("sharded", [False, True])
def test_recovery_of_the_acknowledged_or_the_started_save_passes(chosen: int, sharded: bool) -> None:
    """The newest acknowledged checkpoint is right, and so is a newer one that was complete though never acknowledged."""
    journal = interrupted(sharded=sharded).recovers(chosen).ends_well().journal()
    verdict = check(SCENARIO, journal)
    assert verdict.outcome == "pass", verdict
    assert set(verdict.judged) >= {"newest-complete", "complete-only", "report-truth", "full-state", "rank-agreement"}


def test_journal_that_was_cut_off_is_inconclusive() -> None:
    """A journal without its end is never judged, whatever it shows."""
    events = interrupted().recovers(None).ends_well().journal().events
    for length in range(len(events)):
        verdict = check(SCENARIO, j.Journal(events[:length]))
        assert verdict.outcome == "inconclusive"
        assert "cut off" in verdict.reason


def test_harness_trouble_is_never_a_finding() -> None:
    """Even with a violation in the journal, a trial in which the harness failed is inconclusive."""
    story = interrupted().recovers(None)
    story.events.append(j.HarnessTrouble(what="the node did not answer"))
    verdict = check(SCENARIO, story.journal())
    assert verdict.outcome == "inconclusive"
    assert "the node did not answer" in verdict.reason


def test_missed_fault_makes_a_clean_trial_inconclusive() -> None:
    """A pass needs evidence of every fault: one that missed is named with its reason."""
    story = Story(faults=[["cut"]]).attempt().recovers(None).saves(2).finishes()
    story.events.append(j.FaultNotInjected(fault=0, kind="cut", reason="the attempt ended before"))
    verdict = check(SCENARIO, story.ends("finished").attempt(closing=True).recovers(2).ends_well().journal())
    assert verdict.outcome == "inconclusive"
    assert "cut" in verdict.reason
    assert "the attempt ended before" in verdict.reason


def test_fault_without_any_evidence_makes_a_clean_trial_inconclusive() -> None:
    """A planned fault of which the journal says nothing at all is no pass either."""
    story = Story(faults=[["cut", "latency"]]).attempt().recovers(None).saves(2)
    verdict = check(SCENARIO, story.cut().attempt(closing=True).recovers(2).ends_well().journal())
    assert verdict.outcome == "inconclusive"
    assert "latency" in verdict.reason


def test_violation_counts_though_another_fault_missed() -> None:
    """What the journal proves stays proved when some other fault did not strike."""
    story = Story(faults=[["cut", "latency"]]).attempt().recovers(None).saves(2)
    story.events.append(j.FaultNotInjected(fault=1, kind="latency", reason="never reached"))
    verdict = check(SCENARIO, story.cut().attempt(closing=True).recovers(None).ends_well().journal())
    assert verdict.outcome == "violation"


def test_bytes_past_the_gate_make_a_clean_trial_inconclusive_where_a_fault_struck() -> None:
    """What was written past the gate matters in the attempt in which a fault struck, and nowhere else."""
    for attempt, outcome in ((0, "inconclusive"), (1, "pass")):
        story = interrupted().recovers(2).ends_well()
        story.events.append(j.Untraced(attempt=attempt, rank=1, what="a writable mapping of shared:x"))
        verdict = check(SCENARIO, story.journal())
        assert verdict.outcome == outcome
        assert outcome == "pass" or "a writable mapping" in verdict.reason


def test_way_past_the_gate_that_was_refused_is_no_doubt() -> None:
    """A ring for asynchronous operations that was asked for and refused carried nothing past the gate."""
    story = interrupted().recovers(2).ends_well()
    story.events.append(j.Untraced(attempt=0, rank=1, what="a ring was refused with ENOSYS", refused=True))
    assert check(SCENARIO, story.journal()).outcome == "pass"


def test_broken_invariant_does_not_let_a_trial_pass() -> None:
    """An invariant of a plugin that raises makes the trial inconclusive and is named; others are still judged."""

    def broken(view: TrialView) -> list[object]:
        raise RuntimeError("oops")

    plugin = Invariant(name="mine", holds="it never does", judge=broken)  # type: ignore[arg-type]
    journal = interrupted().recovers(2).ends_well().journal()
    verdict = check(SCENARIO, journal, (*BUILT_IN, plugin))
    assert verdict.outcome == "inconclusive"
    assert "mine" in verdict.reason
    assert "progress" in verdict.judged


def test_missing_closing_attempt_is_inconclusive() -> None:
    """Without a closing attempt nothing shows that the job recovers."""
    story = Story(faults=[["cut"]]).attempt().recovers(None).saves(2).cut()
    assert "no closing attempt" in check(SCENARIO, story.journal()).reason


def test_closing_attempt_that_never_reached_recovery_is_inconclusive() -> None:
    """A job that could not even form its process group says nothing about the target."""
    story = interrupted().raises("start", "DistNetworkError", "the port is taken").ends("failed")
    verdict = check(SCENARIO, story.journal())
    assert verdict.outcome == "inconclusive"
    assert "before any rank began to recover" in verdict.reason


@pytest.mark.parametrize("confirmed", [True, False])
def test_survivors_of_a_killed_rank_may_hang(confirmed: bool) -> None:
    """Survivors that never end are neither a violation nor a doubt: the next attempt is what counts."""
    story = Story(faults=[["sigkill"]]).attempt().recovers(None).saves(2).starts_save(4)
    story.fault("sigkill", at=operation(rank=1)).exits(by="fault", ranks=[1]).exits(by="harness", ranks=[0])
    story.ends("hung", confirmed=confirmed).attempt(closing=True).recovers(2).ends_well()
    assert check(SCENARIO, story.journal()).outcome == "pass"


def test_unconfirmed_hang_is_inconclusive() -> None:
    """A closing attempt that may just have been slow is no violation and no pass, in recovery or in training."""
    training = interrupted().recovers(2).exits(by="harness").ends("hung")
    recovery = interrupted().begins_recovery().exits(by="harness").ends("hung")
    for story in (training, recovery):
        verdict = check(SCENARIO, story.journal())
        assert verdict.outcome == "inconclusive"
        assert "not confirmed" in verdict.reason
