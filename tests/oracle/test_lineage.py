from __future__ import annotations

import pytest

from chaosckpt.oracle import TargetView
from chaosckpt.oracle.facts.lineage import lineage, states_before
from chaosckpt.oracle.facts.saves import saves
from tests.oracle.journals import SCENARIO, TargetJournal


def _told(trial: TargetJournal, attempt: int) -> tuple[list[tuple[int, int, int | None]], bool]:
    found = lineage(TargetView(SCENARIO, trial.journal()), attempt)
    links = [
        (link.attempt.number, link.begins_after, None if link.upto is None else link.upto.step) for link in found.links
    ]
    return links, found.rooted


@pytest.mark.parametrize("sharded", [False, True])
def test_lineage_leads_back_to_the_beginning(sharded: bool) -> None:
    """Each link ends with the save that the next one resumed from, in any world; attempts that led nowhere are left out."""
    trial = TargetJournal(sharded=sharded).attempt().recovers(None).saves(2).starts_save(4).exits(by="fault")
    trial.attempt().recovers(2).exits(by="fault").attempt((1,)).recovers(2).saves(4).exits(by="fault")
    trial.attempt((2, 1)).recovers(4).finishes()
    assert _told(trial, 3) == ([(0, 0, 2), (2, 2, 4), (3, 4, None)], True)
    assert _told(trial, 0) == ([(0, 0, None)], True)


def test_lineage_breaks_off_where_a_recovery_cannot_be_identified() -> None:
    """What a mix descends from nobody knows; neither where ranks disagree, nor where one didn't recover."""
    mixed = (
        TargetJournal()
        .attempt()
        .recovers(None)
        .saves(2)
        .exits(by="fault")
        .attempt()
        .recovers(2, variant="mix")
        .saves(4)
    )
    assert _told(mixed.exits(by="fault").attempt().recovers(4, variant=""), 2) == ([(2, 4, None)], False)
    apart = TargetJournal().attempt().recovers(None).saves(2).saves(4).exits(by="fault").attempt()
    assert _told(apart.recovers(2, ranks=[0]).recovers(4, ranks=[1]), 1) == ([], False)
    alone = TargetJournal().attempt().recovers(None).saves(2).exits(by="fault").attempt().recovers(2, ranks=[0])
    assert _told(alone, 1) == ([], False)


def test_states_of_a_lineage() -> None:
    """What the attempts began with and captured up to a save, the save included, and nothing of other branches."""
    trial = TargetJournal().attempt().recovers(None).saves(2).saves(4).exits(by="fault").attempt().recovers(2).saves(6)
    view = TargetView(SCENARIO, trial.journal())
    words = [who for who, _ in states_before(view, saves(view)[-1])]
    assert words == [
        f"rank {rank} at {what}"
        for what in (
            "the start of attempt 0",
            "step 2 saved in attempt 0",
            "the start of attempt 1",
            "step 6 saved in attempt 1",
        )
        for rank in (0, 1)
    ]
