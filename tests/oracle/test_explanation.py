from __future__ import annotations

import re

from chaosckpt.model import journal as j
from chaosckpt.oracle import explain
from tests.oracle.journals import SCENARIO, Story, interrupted


def test_sets_come_with_the_lines_that_they_are_from() -> None:
    """Required and permitted are printed with events of the journal, each under its own number."""
    journal = interrupted().recovers(4).ends_well().journal()
    text = explain(SCENARIO, journal)
    assert "Required: step 2 saved by attempt 0" in text
    assert "Permitted: step 4 saved by attempt 0, step 2 saved by attempt 0" in text
    assert "exactly step 4 saved by attempt 0" in text
    assert "Verdict: PASS" in text
    acked = next(i for i, event in enumerate(journal.events) if isinstance(event, j.Acknowledged))
    assert re.search(rf"#{acked} rank 0 is told that step 2 is safe on shared", text)


def test_violation_is_told_with_its_sentence_and_events() -> None:
    """The verdict's paragraph has the sentence, and the numbers of the events that show it."""
    text = explain(SCENARIO, interrupted().recovers(None).ends_well().journal())
    assert "Verdict: VIOLATION" in text
    assert "newest-complete: In attempt 1 rank 0 found nothing to resume from" in text
    assert "shown by #" in text


def test_every_journal_can_be_explained() -> None:
    """A torn or empty journal is explained by the reason why it can't be judged."""
    events = interrupted().recovers(2).ends_well().journal().events
    for length in range(len(events)):
        assert "Verdict: INCONCLUSIVE" in explain(SCENARIO, j.Journal(events[:length]))


def test_refusal_and_losses_are_told() -> None:
    """What was destroyed, and that the target had to refuse, is said in words."""
    story = Story(faults=[["cut"], ["shared-storage-loss"]]).attempt().recovers(None).saves(2).cut()
    story.destroys("shared", None, "shared-storage-loss").attempt(closing=True).begins_recovery()
    text = explain(
        SCENARIO, story.raises("recover", "CheckpointError", "nothing in shared/step-*").ends("failed").journal()
    )
    assert "must refuse" in text
    assert "shared storage destroyed (shared-storage-loss, 3 files)" in text
    assert "CheckpointError: nothing in shared/step-* (raised)" in text
