from __future__ import annotations

import re
from pathlib import Path

import pytest

from chaosckpt.model import journal as j
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle import CommandView, Invariant, TargetView, check, gravity, root_cause
from chaosckpt.oracle.check import BUILT_IN, ranked
from chaosckpt.plugins import invariants
from tests.oracle.command_journals import CommandJournal, killed_in_save_4
from tests.oracle.journals import SCENARIO, TargetJournal, interrupted, operation

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "truth.md"
ORDER = (
    "complete-only rank-agreement reported-step full-state exactly-once-data trajectory durable-acknowledgement "
    "newest-complete always-recoverable result-equal clear-failure bounded-saves progress bounded-leftovers"
).split()


def test_control_trial_passes() -> None:
    """A trial without faults that starts, trains, saves and ends passes, though nothing was to be recovered."""
    verdict = check(
        SCENARIO, TargetJournal().attempt(closing=True).recovers(None).saves(2).saves(4).ends_well().journal()
    )
    assert verdict.outcome == "pass", verdict
    assert "progress" in verdict.judged


@pytest.mark.parametrize("chosen", [2, 4])
@pytest.mark.parametrize("sharded", [False, True])
def test_recovery_of_the_acknowledged_or_the_started_save_passes(chosen: int, sharded: bool) -> None:
    """The newest acknowledged checkpoint is right, and so is a newer one that was complete though never acknowledged."""
    journal = interrupted(sharded=sharded).recovers(chosen).ends_well().journal()
    verdict = check(SCENARIO, journal)
    assert verdict.outcome == "pass", verdict
    assert set(verdict.judged) >= {"newest-complete", "complete-only", "reported-step", "full-state", "rank-agreement"}


def test_journal_that_was_cut_off_is_inconclusive() -> None:
    """A journal without its end is never judged, whatever it shows."""
    events = interrupted().recovers(None).ends_well().journal().events
    for length in range(len(events)):
        verdict = check(SCENARIO, j.Journal(events[:length]))
        assert verdict.outcome == "inconclusive"
        assert "cut off" in verdict.reason


def test_harness_trouble_is_never_a_finding() -> None:
    """Even with a violation in the journal, a trial in which the harness failed is inconclusive."""
    trial = interrupted().recovers(None)
    trial.events.append(j.HarnessTrouble(what="the node did not answer"))
    verdict = check(SCENARIO, trial.journal())
    assert verdict.outcome == "inconclusive"
    assert "the node did not answer" in verdict.reason


def test_missed_fault_makes_a_clean_trial_inconclusive() -> None:
    """A pass needs evidence of every fault: one that missed is named with its reason."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).finishes()
    trial.events.append(j.FaultNotInjected(fault=0, kind="cut", reason="the attempt ended before"))
    verdict = check(SCENARIO, trial.ends("finished").attempt(closing=True).recovers(2).ends_well().journal())
    assert verdict.outcome == "inconclusive"
    assert "cut" in verdict.reason
    assert "the attempt ended before" in verdict.reason


def test_a_kill_behind_an_error_that_ended_the_attempt_is_not_missed() -> None:
    """The error was injected, and the attempt ended by it: the trial shows what it would show without the kill."""
    for excused, outcome in ((True, "pass"), (False, "inconclusive")):
        trial = TargetJournal(faults=[["errno", "cut"]]).attempt().recovers(None).saves(2).injects()
        trial.events.append(j.FaultNotInjected(fault=1, kind="cut", reason="the attempt ended before", excused=excused))
        verdict = check(SCENARIO, trial.ends("finished").attempt(closing=True).recovers(2).ends_well().journal())
        assert verdict.outcome == outcome


def test_fault_without_any_evidence_makes_a_clean_trial_inconclusive() -> None:
    """A planned fault of which the journal says nothing at all is no pass either."""
    trial = TargetJournal(faults=[["cut", "latency"]]).attempt().recovers(None).saves(2)
    verdict = check(SCENARIO, trial.cut().attempt(closing=True).recovers(2).ends_well().journal())
    assert verdict.outcome == "inconclusive"
    assert "latency" in verdict.reason


def test_violation_counts_though_another_fault_missed() -> None:
    """What the journal proves stays proved when some other fault did not strike."""
    trial = TargetJournal(faults=[["cut", "latency"]]).attempt().recovers(None).saves(2)
    trial.events.append(j.FaultNotInjected(fault=1, kind="latency", reason="never reached"))
    verdict = check(SCENARIO, trial.cut().attempt(closing=True).recovers(None).ends_well().journal())
    assert verdict.outcome == "violation"


def test_bytes_past_the_gate_make_a_clean_trial_inconclusive_where_a_fault_struck() -> None:
    """What was written past the gate matters in the attempt in which a fault struck, and nowhere else."""
    for attempt, outcome in ((0, "inconclusive"), (1, "pass")):
        trial = interrupted().recovers(2).ends_well()
        trial.events.append(j.Untraced(attempt=attempt, rank=1, what="a writable mapping of shared:x"))
        verdict = check(SCENARIO, trial.journal())
        assert verdict.outcome == outcome
        assert outcome == "pass" or "a writable mapping" in verdict.reason


def test_way_past_the_gate_that_was_refused_is_no_doubt() -> None:
    """A ring for asynchronous operations that was asked for and refused carried nothing past the gate."""
    trial = interrupted().recovers(2).ends_well()
    trial.events.append(j.Untraced(attempt=0, rank=1, what="a ring was refused with ENOSYS", refused=True))
    assert check(SCENARIO, trial.journal()).outcome == "pass"


def raises(view: TargetView | CommandView) -> list[Violation]:
    raise RuntimeError("oops")


def always(view: TargetView | CommandView) -> list[Violation]:
    """An invariant of a plugin that nothing satisfies, shown by the last event but one."""
    last = len(view.journal.events) - 2
    return [
        view.violation(
            "mine", "It never holds.", attempt=0, error_type="always", evidence=[last], expected="a", seen="b"
        )
    ]


def trial_of(kind: str, *, right: bool = True) -> TargetJournal | CommandJournal:
    """A trial of a target or of a command that recovers rightly, or not at all."""
    if kind == "target":
        return interrupted().recovers(2 if right else None).ends_well()
    trial = killed_in_save_4().attempt(closing=True)
    return trial.says_resumed(2).saves(4, 6).finishes() if right else trial.saves(2, 4, 6).finishes()


@pytest.mark.parametrize("kind", ["target", "command"])
def test_broken_invariant_does_not_let_a_trial_pass(kind: str) -> None:
    """An invariant of a plugin that raises makes the trial inconclusive and is named; others are still judged."""
    broken = Invariant("mine", "it never does", of_target=raises, of_command=raises)
    verdict = trial_of(kind).verdict(broken)
    assert verdict.outcome == "inconclusive"
    assert "mine raised RuntimeError: oops" in verdict.reason
    assert "progress" in verdict.judged
    assert "mine raised RuntimeError: oops" in trial_of(kind).explained(broken)
    stands = trial_of(kind, right=False).verdict(broken)
    assert stands.outcome == "violation"
    assert "mine" in stands.reason


@pytest.mark.parametrize("kind", ["target", "command"])
def test_invariant_of_a_plugin_judges_targets_and_commands(kind: str) -> None:
    """Its violation is the primary one where there is no other, comes after a built-in one, and has a root cause."""
    plugin = Invariant("mine", "it never does", of_target=always, of_command=always)
    trial = trial_of(kind)
    verdict = trial.verdict(plugin)
    assert verdict.primary is not None
    assert verdict.primary.invariant == "mine"
    assert "Likely cause: job killed in attempt 0" in verdict.primary.sentence
    assert root_cause(trial.journal(), verdict).invariant == "mine"
    both = trial_of(kind, right=False).verdict(plugin)
    assert both.primary is not None
    assert both.primary.invariant == "newest-complete"
    assert "mine" in [violation.invariant for violation in both.others]


@pytest.mark.parametrize("kind", ["target", "command"])
def test_invariant_of_one_subject_does_not_apply_to_the_other(kind: str) -> None:
    """What judges targets only says nothing of a command, and the other way round; the explanation tells that."""
    judges = {"of_command" if kind == "target" else "of_target": always}
    plugin = Invariant("mine", "it never does", **judges)
    verdict = trial_of(kind).verdict(plugin)
    assert verdict.outcome == "pass"
    assert "mine" not in verdict.judged
    assert not [reason for reason in verdict.unjudged if "mine" in reason]
    (line,) = [line for line in trial_of(kind).explained(plugin).splitlines() if f"does not apply to {kind}s: " in line]
    assert "mine" in line.partition(": ")[2].split(", ")
    assert ("result-equal" in line, "rank-agreement" in line) == (kind == "target", kind == "command")


def test_the_order_in_which_invariants_are_given_does_not_matter() -> None:
    """Judged and not judged are told in the order of precedence, those of plugins last."""
    plugin = Invariant("a-first-name", "always", of_target=lambda view: [], of_command=lambda view: [])
    given = (*BUILT_IN, plugin)
    for kind in ("target", "command"):
        trial = trial_of(kind)
        there, back = (check(trial.scenario, trial.journal(), order) for order in (given, given[::-1]))
        assert there == back
        assert there.judged[-1] == "a-first-name"


def test_rank_in_a_violation_of_a_command() -> None:
    """The rank that told it, or whose line says so itself; none where the command as a whole is meant."""
    told = killed_in_save_4(ranks=[2])
    told.number = 0
    told.probes("saved", 2, rank=1, digest="two").attempt(closing=True).says_resumed(2).saves(4, 6)
    told.probes("resumed", 2, rank=1, digest="other").finishes()
    failed = killed_in_save_4(ranks=[2]).attempt(closing=True)
    whole = killed_in_save_4().attempt(closing=True).says_resumed(2).saves(4, 6).finishes(equal=False)
    expected = {"full-state": 1, "newest-complete": 1, "result-equal": None}
    for trial in (told, failed.fails("[rank1]: ValueError: no"), whole):
        primary = trial.verdict().primary
        assert primary is not None
        assert primary.rank == expected[primary.invariant], primary


def test_doubts_of_a_journal_of_a_command_that_was_cut_off() -> None:
    """A command's journal without its end, and one in which the harness failed, are never judged."""
    trial = trial_of("command", right=False)
    events = trial.journal().events
    assert "cut off" in check(trial.scenario, j.Journal(events[:-1])).reason
    trial.events.append(j.HarnessTrouble(what="the node did not answer"))
    assert "the node did not answer" in trial.verdict().reason


def test_missing_closing_attempt_is_inconclusive() -> None:
    """Without a closing attempt nothing shows that the job recovers."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).cut()
    assert "no closing attempt" in check(SCENARIO, trial.journal()).reason


def test_closing_attempt_that_never_reached_recovery_is_inconclusive() -> None:
    """A job that could not even form its process group says nothing about the target."""
    trial = interrupted().raises("start", "DistNetworkError", "the port is taken").ends("failed")
    verdict = check(SCENARIO, trial.journal())
    assert verdict.outcome == "inconclusive"
    assert "before any rank began to recover" in verdict.reason


@pytest.mark.parametrize("confirmed", [True, False])
def test_survivors_of_a_killed_rank_may_hang(confirmed: bool) -> None:
    """Survivors that never end are neither a violation nor a doubt: the next attempt is what counts."""
    trial = TargetJournal(faults=[["sigkill"]]).attempt().recovers(None).saves(2).starts_save(4)
    trial.fault("sigkill", at=operation(rank=1)).exits(by="fault", ranks=[1]).exits(by="harness", ranks=[0])
    trial.ends("hung", confirmed=confirmed).attempt(closing=True).recovers(2).ends_well()
    assert check(SCENARIO, trial.journal()).outcome == "pass"


def test_unconfirmed_hang_is_inconclusive() -> None:
    """A closing attempt that may just have been slow is no violation and no pass, in recovery or in training."""
    training = interrupted().recovers(2).exits(by="harness").ends("hung")
    recovery = interrupted().begins_recovery().exits(by="harness").ends("hung")
    for trial in (training, recovery):
        verdict = check(SCENARIO, trial.journal())
        assert verdict.outcome == "inconclusive"
        assert "no run of it alone with three times the deadline confirmed the hang" in verdict.reason


def test_order_of_precedence() -> None:
    """Wrong state first, then a lost checkpoint, then how the job ended; the page on truth has the same table."""
    assert [invariant.name for invariant in BUILT_IN] == ORDER
    assert re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE) == ORDER


def test_built_ins_are_the_registered_ones() -> None:
    """Each built-in invariant is registered under its own name."""
    found = invariants()
    assert {name: found[name] for name in ORDER} == {invariant.name: invariant for invariant in BUILT_IN}


def test_ranking() -> None:
    """By precedence, then the earliest attempt, then the lowest rank; invariants of plugins come last."""
    told = [
        Violation(invariant="of-a-plugin", sentence="", attempt=0),
        Violation(invariant="bounded-leftovers", sentence="", attempt=0),
        Violation(invariant="exactly-once-data", sentence="", attempt=2, rank=0),
        Violation(invariant="exactly-once-data", sentence="", attempt=1, rank=1),
        Violation(invariant="exactly-once-data", sentence="", attempt=1, rank=0),
    ]
    assert ranked(told) == list(reversed(told))


def test_findings_are_ordered_by_gravity() -> None:
    """Silent wrong state comes first, then lost checkpoints, refusals, hangs, a plugin's findings and leftovers."""
    causes = [
        ("result-equal", "different"),
        ("newest-complete", "EOFError"),
        ("clear-failure", "silent-exit"),
        ("clear-failure", "hang"),
        ("of-a-plugin", "odd"),
        ("bounded-leftovers", "growing"),
    ]
    assert sorted(set(causes), key=lambda cause: gravity(*cause)) == causes
