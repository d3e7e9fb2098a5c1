from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model import journal as j
from chaosckpt.model.digest import StateDigest
from chaosckpt.oracle import NotJudged, TargetView, check, root_cause
from chaosckpt.oracle.invariants.exactly_once_data import exactly_once_data
from tests.oracle.command_journals import SAVED, CommandJournal
from tests.oracle.journals import SCENARIO, TargetJournal, passes
from tests.oracle.states import share, state


def resumed(ranks: tuple[int, ...] = (1, 1), **more: bool) -> TargetJournal:
    """Attempt 0 saved steps 2 and 4, and was killed; the closing attempt, with these ranks, resumed from step 4."""
    trial = TargetJournal(faults=[["cut"]], **more).attempt().recovers(None).saves(2).saves(4)  # type: ignore[arg-type]
    return trial.cut().reference(0, 4).attempt(ranks, closing=True)


def _found(trial: TargetJournal) -> tuple[str, int | None, str] | None:
    verdict = check(SCENARIO, trial.journal())
    assert "exactly-once-data" in verdict.judged, verdict
    violations = [v for v in (verdict.primary, *verdict.others) if v is not None and v.invariant == "exactly-once-data"]
    assert len(violations) < 2
    return (violations[0].sentence, violations[0].step, violations[0].error_type) if violations else None


@pytest.mark.parametrize("ranks", [(1, 1), (2, 1), (1,)])
def test_each_sample_in_its_turn_passes(ranks: tuple[int, ...]) -> None:
    """An interrupted lineage that trains the uninterrupted run's samples is right, with any number of ranks."""
    assert _found(resumed(ranks).recovers(4).ends_well().reference(4)) is None


def test_steps_that_nobody_resumed_from_do_not_count() -> None:
    """Steps after the save that the next attempt resumed from are trained again, and that is right."""
    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).saves(4).starts_save(6).cut().reference(0)
    assert _found(trial.attempt(closing=True).recovers(2).ends_well().reference(2)) is None


def test_data_position_that_was_not_restored() -> None:
    """A job that begins the data anew after a restart repeats samples, and skips those whose turn it was."""
    trial = resumed()
    trial.share = lambda step, rank, world: share(step - 4, rank, world)
    found = _found(trial.recovers(4).ends_well().reference(4))
    assert found is not None
    assert found[1:] == (5, "repeated-samples")
    assert "Step 5, trained by ranks 0 and 1 in attempt 1, skipped samples 16, 17, 18, 19, repeated samples" in found[0]


def test_added_rank_that_goes_its_own_way() -> None:
    """One new rank with another data position skips some samples and repeats others."""
    trial = resumed((2, 1))
    trial.share = lambda step, rank, world: share(step if rank < 2 else step - 4, rank, world)
    found = _found(trial.recovers(4).ends_well().reference(4))
    assert found is not None
    assert "skipped sample 18, repeated sample 2" in found[0]


def test_skipped_step_of_the_lineage() -> None:
    """A job that resumes step 2 and goes on as if it were step 4 has skipped the samples of steps 3 and 4."""

    def change(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, step=4)

    trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None).saves(2).starts_save(4).cut().reference(0, 4)
    found = _found(trial.attempt(closing=True).recovers(2, but=change).ends_well().reference(2))
    assert found is not None
    assert found[1:] == (3, "skipped-samples")
    assert "Step 3, trained by no rank in attempt 1, skipped samples 8, 9, 10, 11" in found[0]


def test_lineage_ends_with_the_last_attempt_that_trained() -> None:
    """Where no attempt finished, the newest one that trained is judged as far as all its ranks have told."""
    trial = resumed().recovers(4)
    trial.share = lambda step, rank, world: (0,)
    found = _found(trial.starts_save(6).exits(1).ends("failed").reference(4))
    assert found is not None
    assert found[1] == 5


def test_sample_twice_in_an_epoch() -> None:
    """Even where the reference says nothing of a step, a sample that the epoch had had is told."""
    trial = resumed()
    trial.share = lambda step, rank, world: (0, 1)[rank::world]
    found = _found(trial.recovers(4).ends_well())
    assert found is not None
    assert "repeated sample 0 of step 1 of the same epoch" in found[0]


def test_not_judged_without_reference_or_traces() -> None:
    """Without a reference, or with ranks that don't tell what they trained, there is nothing to compare."""
    told = resumed().recovers(4).ends_well().reference(4).journal().events
    silent = [
        msgspec.structs.replace(event, trained=()) if isinstance(event, j.SaveStarted | j.Finished) else event
        for event in told
    ]
    unreferenced = [event for event in told if not isinstance(event, j.Reference)]
    for events in (silent, unreferenced, told[:1]):
        assert isinstance(exactly_once_data.judge(TargetView(SCENARIO, j.Journal(tuple(events)))), NotJudged)


def test_state_of_the_story_has_no_part_in_it() -> None:
    """What was loaded is judged by others: a wrong digest with the right samples breaks nothing here."""

    def change(digest: StateDigest) -> StateDigest:
        return msgspec.structs.replace(digest, sampler=state(0, digest.rank).sampler)

    assert _found(resumed().recovers(4, but=change).ends_well().reference(4)) is None


def test_rank_that_ended_before_it_began_the_save_that_was_resumed() -> None:
    """What every rank has told is judged, be it less than what the next attempt resumed from."""
    for wrong in (False, True):
        trial = TargetJournal(faults=[["cut"]]).attempt().recovers(None)
        if wrong:
            trial.share = lambda step, rank, world: (63,)
        trial.saves(2).starts_save(4, ranks=[0]).cut().reference(0, 4)
        trial.share = share
        found = _found(trial.attempt((1,), closing=True).recovers(4).ends_well().reference(4))
        assert (found is not None) == wrong


def probing(samples_of_3: tuple[int, ...] = (3,), digest: str = "two") -> CommandJournal:
    """A script that tells its state and its samples: killed in save 4, resumed from step 2."""
    trial = CommandJournal(SAVED, samples={step: (step,) for step in (1, 2, 3, 4)}).attempt().saves(2).tears(4).cut()
    for step in (1, 2, 3):
        trial.probes("trained", step, samples=(step,))
    trial.probes("saved", 2, digest="two").attempt(closing=True).says_resumed(2).saves(4, 6).finishes()
    trial.probes("resumed", 2, digest=digest).probes("trained", 3, samples=samples_of_3)
    return trial.probes("trained", 4, samples=(4,))


def test_what_the_probe_tells():
    """The state that was saved and each sample once break nothing; other ones do, and no fault's place is behind that."""
    passes(probing())
    for trial, invariant in (
        (probing(samples_of_3=(1,)), "exactly-once-data"),
        (probing(digest="other"), "full-state"),
    ):
        verdict = trial.verdict()
        assert str(root_cause(trial.journal(), verdict)) == f"{invariant} / inexact-resume"
