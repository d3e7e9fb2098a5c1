from __future__ import annotations

from chaosckpt.oracle import root_cause
from tests.oracle.command_journals import SAVED, CommandJournal, killed_in_save_4
from tests.oracle.journals import operation, passes, violated


def test_another_result():
    """Everything about its checkpoints is right, and it still ends elsewhere."""
    trial = killed_in_save_4().attempt(closing=True).says_resumed(2).saves(4, 6).finishes(equal=False)
    assert violated(trial) == ("result-equal", "other-result")


def test_resuming_alone_changes_the_result():
    """C28: where golden recoveries end elsewhere, too, no fault is behind it, and all such trials are one finding."""
    judged = tuple(marker for marker in SAVED if marker != "exact")
    causes = set()
    for label in ("persist of save 4", "persist of save 6"):
        trial = (
            CommandJournal(judged)
            .attempt()
            .saves(2)
            .fault("cut", at=operation(path=f"out:{label[-1]}.pt"), label=label)
            .kills()
        )
        trial.attempt(closing=True).says_resumed(2).saves(4, 6).finishes(equal=False)
        verdict = trial.verdict()
        causes.add(root_cause(trial.journal(), verdict))
        assert verdict.primary is not None
        assert "without any fault, too" in verdict.primary.sentence
        assert "most likely" not in verdict.primary.sentence
    assert [str(cause) for cause in causes] == ["result-equal / inexact-resume"]


def test_another_number_of_ranks_may_end_elsewhere():
    """The result of other ranks is not compared with that of the first."""
    trial = killed_in_save_4().attempt([2], closing=True).says_resumed(2).saves(4, 6).finishes(equal=False)
    passes(trial)
    assert any("number of ranks" in reason for reason in trial.verdict().unjudged)
