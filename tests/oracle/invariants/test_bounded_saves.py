from __future__ import annotations

import pytest

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle import NotJudged, TargetView, check
from chaosckpt.oracle.invariants.bounded_saves import bounded_saves
from tests.oracle.journals import SCENARIO, TargetJournal, operation

AT = operation(rank=1, op="write", path="shared:step-000004/__1_0.distcp")


def _found(trial: TargetJournal) -> list[Violation]:
    verdict = check(SCENARIO, trial.journal())
    assert "bounded-saves" in verdict.judged, verdict
    every = (verdict.primary, *verdict.others)
    return [violation for violation in every if violation is not None and violation.invariant == "bounded-saves"]


def start(**more: object) -> TargetJournal:
    return TargetJournal(**more).attempt(closing=True).recovers(None)  # type: ignore[arg-type]


def test_saves_under_way_within_the_bound() -> None:
    """As many saves under way as the target claims, acknowledged in any order, are right."""
    trial = start(outstanding=2).starts_save(2).has_outstanding(2, [2]).starts_save(4).has_outstanding(4, [2, 4])
    assert _found(trial.acknowledges(4).acknowledges(2).ends_well()) == []


def test_more_saves_under_way_than_the_bound() -> None:
    """The first save too many is told, with the steps under way."""
    trial = start().starts_save(2).has_outstanding(2, [2]).starts_save(4).has_outstanding(4, [2, 4])
    found = _found(trial.acknowledges(2).acknowledges(4).ends_well())
    assert [(v.step, v.rank, v.error_type) for v in found] == [(4, 0, "backlog")]
    assert (
        "rank 0 had 2 unfinished saves (steps 2, 4) after save() of step 4 returned, but the target declares at most 1"
        in found[0].sentence
    )


def test_awaited_save_that_was_never_acknowledged() -> None:
    """A script that awaits its saves, and ends in order, has been told of each one or got an error."""
    found = _found(start().saves(2).starts_save(6).acknowledges(6, ranks=[0]).finishes().ends("finished"))
    assert [(v.step, v.rank, v.error_type) for v in found] == [(6, 1, "unfinished-save")]
    assert "no acknowledgement on rank 1" in found[0].sentence


@pytest.mark.parametrize(("loaded", "count"), [({6: 6}, 0), ({2: 2}, 1), ({6: "no .metadata"}, 1)])
def test_closing_finishes_the_last_save(loaded: dict[int, int | str], count: int) -> None:
    """A target that was closed has finished its last save: an audit finds it, though nobody was told."""
    trial = start(at_end="close").saves(2).starts_save(6).has_outstanding(6, [6]).finishes().ends("finished")
    found = _found(trial.audits(loaded, asked=(2, 6)))
    assert [v.error_type for v in found] == ["unfinished-save"] * count


def test_exit_without_awaiting_or_closing_owes_nothing() -> None:
    """A script that just exits can't ask for its last save."""
    trial = start(at_end="exit").saves(2).starts_save(6).has_outstanding(6, [6]).finishes().ends("finished")
    assert _found(trial.audits({2: 2}, asked=(2, 6))) == []


def test_error_that_surfaces_nowhere() -> None:
    """An error injected into a save that is neither acknowledged nor raised, in a job that ends in order, was swallowed."""
    trial = TargetJournal(faults=[["errno"]]).attempt().recovers(None).saves(2).starts_save(4)
    trial.injects("EIO", AT, "persist of save 4").finishes(4).ends("finished")
    found = _found(trial.attempt(closing=True).recovers(2).ends_well())
    assert [(v.step, v.rank, v.error_type) for v in found] == [(4, 1, "swallowed-error")]
    assert "a fault hit rank 1's first write to step-000004/__1_0.distcp (EIO)" in found[0].sentence
    assert found[0].path == "shared:step-000004/__1_0.distcp"


def test_error_that_surfaces() -> None:
    """Raised, retried or acknowledged all the same: an error that is told is right."""
    begun = TargetJournal(faults=[["errno"]]).attempt().recovers(None).saves(2).starts_save(4)
    begun.injects("EIO", AT, "persist of save 4").fails_save(4).saves(4).finishes().ends("finished")
    assert _found(begun.attempt(closing=True).recovers(4).ends_well()) == []
    raised = TargetJournal(faults=[["errno"]]).attempt().recovers(None).saves(2).starts_save(4)
    raised.injects("EIO", AT, "persist of save 4").raises("wait", "OSError", "EIO").ends("failed")
    assert _found(raised.attempt(closing=True).recovers(2).ends_well()) == []


def test_error_of_a_closed_save_that_was_put_right() -> None:
    """Without awaiting there is no acknowledgement: an audit that loads the save shows that the error was overcome."""
    cases: list[tuple[dict[int, int | str], int]] = [({2: 2, 4: 4}, 0), ({2: 2}, 1)]
    for loaded, count in cases:
        trial = (
            TargetJournal(faults=[["errno"]], at_end="close")
            .attempt(closing=True)
            .recovers(None)
            .saves(2)
            .starts_save(4)
        )
        trial.injects("EIO", AT, "persist of save 4").finishes().ends("finished")
        found = _found(trial.audits(loaded, asked=(2, 4)))
        assert [v.error_type for v in found] == ["swallowed-error"] * count


def test_not_judged_without_an_orderly_end() -> None:
    """A job that was killed, with nothing under way, gives no subject."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).cut()
    assert isinstance(bounded_saves.judge(TargetView(SCENARIO, trial.journal())), NotJudged)
