from __future__ import annotations

import re

from chaosckpt.model import journal as j
from chaosckpt.oracle import explain
from tests.oracle.command_journals import MISSING, killed_in_save_4
from tests.oracle.journals import SCENARIO, TargetJournal, interrupted


def test_sets_come_with_the_lines_that_they_are_from() -> None:
    """Required and permitted are printed with events of the journal, each under its own number."""
    journal = interrupted().recovers(4).ends_well().journal()
    text = explain(SCENARIO, journal)
    assert "Required: step 2 saved in attempt 0" in text
    assert "Accepted: step 4 saved in attempt 0, step 2 saved in attempt 0" in text
    assert "exactly step 4 saved in attempt 0" in text
    assert "Verdict: PASS" in text
    acked = next(i for i, event in enumerate(journal.events) if isinstance(event, j.Acknowledged))
    assert re.search(rf"#{acked} rank 0 acknowledges step 2 as safe on shared storage", text)


def test_violation_is_told_with_its_sentence_and_events() -> None:
    """The verdict's paragraph has the sentence, and the numbers of the events that show it."""
    text = explain(SCENARIO, interrupted().recovers(None).ends_well().journal())
    assert "Verdict: VIOLATION" in text
    assert "newest-complete: After the restart, rank 0 found no checkpoint" in text
    assert "evidence: events #" in text


def test_every_journal_can_be_explained() -> None:
    """A torn or empty journal is explained by the reason why it can't be judged."""
    events = interrupted().recovers(2).ends_well().journal().events
    for length in range(len(events)):
        assert "Verdict: INCONCLUSIVE" in explain(SCENARIO, j.Journal(events[:length]))


def test_refusal_and_losses_are_told() -> None:
    """What was destroyed, and that the target had to refuse, is said in words."""
    trial = TargetJournal(faults=[["cut"], ["shared-storage-loss"]]).attempt().recovers(None).saves(2).cut()
    trial.destroys("shared", None, "shared-storage-loss").attempt(closing=True).begins_recovery()
    text = explain(
        SCENARIO, trial.raises("recover", "CheckpointError", "nothing in shared/step-*").ends("failed").journal()
    )
    assert "must fail: no checkpoint can be left" in text
    assert "shared storage destroyed (shared-storage-loss, 3 files)" in text
    assert "CheckpointError: nothing in shared/step-* (raised)" in text


def test_references_audits_and_what_was_not_judged_are_told() -> None:
    """The harness's own runs, what lies on storage, and the reason why each invariant had nothing to judge."""
    trial = interrupted().recovers(2).ends_well().audits({2: 2, 6: "no such file"}).reference(2)
    text = explain(SCENARIO, trial.leaves({"shared:a.tmp": 10}, 10).journal())
    assert "attempt 1, steps 3 to 6, trained with ranks 1+1 from step 0" in text
    assert "after attempt 1, step 2 saved in attempt 0 loads exactly" in text
    assert "after attempt 1, step 6 saved in attempt 1: rank 0 could not load it: OSError: no such file" in text
    assert "of which 10 bytes are abandoned" in text
    assert "clear-failure was not judged: no recovery hung, and no recovery failed that was allowed to fail" in text


def test_a_recovery_that_was_harmed_has_nothing_required_in_any_line() -> None:
    """Goal: the line of the newest acknowledged save doesn't call it required where the heading says that nothing is."""
    trial = TargetJournal(faults=[["cut"], ["sigkill"]]).attempt().recovers(None).saves(2).cut()
    trial.attempt().begins_recovery().exits(by="fault").ends("killed").attempt(closing=True).recovers(2)
    harmed, undisturbed = explain(SCENARIO, trial.ends_well().journal()).split("Recovery of attempt ")[2:]
    assert "Required: nothing" in harmed
    assert "required: the newest" not in harmed
    assert "the newest save that is acknowledged by every rank" in harmed
    assert "required: the newest save that is acknowledged by every rank" in undisturbed


def test_what_a_command_was_required_to_find_is_told():
    """For a person: what lay there, what was required and why, and what could not be judged with which option."""
    text = (
        killed_in_save_4(judged=("checkpoints", "resumed", "resumes", "saved"))
        .attempt(closing=True)
        .fails(MISSING)
        .explained()
    )
    assert "found complete: step 2" in text
    assert "found incomplete: step 4" in text
    assert "required: step 2, because the command had reported step 2 as saved" in text
    assert "result-equal was not judged" in text
    assert "--result" in text
    assert "Verdict: VIOLATION" in text
