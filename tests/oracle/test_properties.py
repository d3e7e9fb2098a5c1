"""Properties that hold for every journal, however ranks, faults and saves fell."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from chaosckpt.model import journal as j
from chaosckpt.model.guarantee import Guarantee
from chaosckpt.oracle import TargetView, check, explain
from chaosckpt.oracle.check import BUILT_IN
from chaosckpt.oracle.facts.requirement import requirement
from chaosckpt.oracle.facts.view import rank_of
from tests.oracle.journals import SCENARIO, TargetJournal, operation

WORLDS = st.sampled_from([(1, 1), (1,), (2, 1)])
LEVELS = st.sampled_from(["shared", "local"])
QUICK = settings(max_examples=80, deadline=None)


ALL: tuple[Guarantee, ...] = ("process-crash", "node-loss", "local-storage-loss", "world-size-change")
PROMISES: list[tuple[Guarantee, ...]] = [("process-crash",), ALL]


@st.composite
def trials(draw: st.DrawFn) -> TargetJournal:
    """Two or three attempts with saves that some ranks started and some acknowledged, losses, and any recovery.

    In an orderly trial every recovery takes what is required of it; in the others each rank may take anything.
    """
    orderly, constant = draw(st.booleans()), draw(st.booleans())
    fresh_start = draw(st.sampled_from(["refused", "allowed"]))
    trial = TargetJournal(
        draw(WORLDS),
        guarantees=draw(st.sampled_from(PROMISES)),
        sharded=draw(st.booleans()),
        fresh_start=fresh_start,
        keeps_rng=draw(st.booleans()),
        at_end=draw(st.sampled_from(["await", "close", "exit"])),
    )
    for _ in range(draw(st.integers(1, 2))):
        trial.attempt(None if constant else draw(WORLDS), variant=draw(st.sampled_from(["", "b"])))
        _recover(draw, trial, orderly)
        for step in (2, 4):
            _save(draw, trial, step)
        if draw(st.booleans()):
            trial.fault("cut", at=operation(), label="persist of save 4")
        if draw(st.booleans()):
            trial.finishes(4).ends("finished")
        else:
            trial.exits(by=draw(st.sampled_from(["fault", "harness"]))).ends(draw(st.sampled_from(["killed", "hung"])))
        _afterwards(draw, trial)
        if draw(st.booleans()):
            trial.destroys("local", draw(st.integers(0, 1)), "local-storage-loss")
        if draw(st.booleans()):
            trial.mutates("shared:step-000002/state.pt", damages=draw(st.booleans()))
    trial.attempt(closing=True)
    _recover(draw, trial, orderly)
    trial.saves(6).finishes().ends("finished")
    _afterwards(draw, trial)
    return trial.leaves({"shared:a.tmp": 100}, draw(st.sampled_from([0, 1000])))


def _afterwards(draw: st.DrawFn, trial: TargetJournal) -> None:
    """What the harness does after an attempt: an audit, with any outcome, and the reference."""
    if draw(st.booleans()):
        outcomes: st.SearchStrategy[int | str] = st.sampled_from([2, 4, "no such file"])
        loaded = {step: draw(outcomes) for step in (2, 4)}
        trial.audits(
            loaded, outcome=draw(st.sampled_from(["finished", "hung"])), asked=draw(st.sampled_from([(2, 4), (4,)]))
        )
    if draw(st.booleans()):
        trial.reference(draw(st.sampled_from([0, 2])), draw(st.sampled_from([4, 6])))


def _recover(draw: st.DrawFn, trial: TargetJournal, orderly: bool) -> None:
    if orderly:
        view = TargetView(SCENARIO, trial.journal())
        required = requirement(view, view.attempts[-1]).required
        if required is None:
            trial.recovers(None, variant="")
        else:
            trial.recovers(required.step, attempt=required.attempt, variant=trial.variants[required.attempt])
        return
    for rank in range(trial.world):
        chosen = draw(st.sampled_from([None, 2, 2, 4]))
        trial.recovers(chosen, shown=draw(st.sampled_from([chosen or 0, 2])), ranks=[rank], variant="", attempt=0)


def _save(draw: st.DrawFn, trial: TargetJournal, step: int) -> None:
    everyone = list(range(trial.world))
    some = st.one_of(st.just(everyone), st.lists(st.sampled_from(everyone), unique=True))
    started, acked = draw(some), draw(some)
    trial.starts_save(step, started)
    if draw(st.booleans()):
        rank = draw(st.sampled_from(everyone))
        trial.injects("EIO", operation(rank, path=f"shared:step-00000{step}/{rank}.pt"), f"persist of save {step}")
    if draw(st.booleans()):
        trial.fails_save(step, started).starts_save(step, started)
    if draw(st.booleans()):
        trial.has_outstanding(step, draw(st.sampled_from([(step,), (2, 4)])))
    trial.acknowledges(step, draw(LEVELS), [rank for rank in acked if rank in started])


@QUICK
@given(trials())
def test_required_is_permitted(trial: TargetJournal) -> None:
    """What is required is always permitted, and everything else that is permitted is newer."""
    view = TargetView(SCENARIO, trial.journal())
    for attempt in view.attempts:
        found = requirement(view, attempt)
        if found.required is not None:
            assert found.permits(found.required)
            assert all(save.key >= found.required.key for save in found.permitted)


@QUICK
@given(trials(), st.data())
def test_one_more_acknowledgement_never_lowers_what_is_required(trial: TargetJournal, data: st.DataObject) -> None:
    """With one more acknowledgement the required step of no recovery goes down, where the guarantees cover all that struck."""
    start = trial.events[0]
    assert isinstance(start, j.TrialStarted)
    if "world-size-change" not in start.guarantees:
        return
    saves = [(i, event) for i, event in enumerate(trial.events) if isinstance(event, j.SaveStarted)]
    if not saves:
        return
    index, save = data.draw(st.sampled_from(saves))
    level = data.draw(LEVELS)
    more = list(trial.events)
    more.insert(index + 1, j.Acknowledged(attempt=save.attempt, rank=save.rank, step=save.step, level=level))
    before = TargetView(SCENARIO, trial.journal())
    after = TargetView(SCENARIO, j.Journal((*more, j.TrialEnded())))
    for old, new in zip(before.attempts, after.attempts, strict=True):
        required, now = requirement(before, old).required, requirement(after, new).required
        if required is not None:
            assert now is not None
            assert now.key >= required.key


@QUICK
@given(trials(), st.randoms(use_true_random=False))
def test_order_between_ranks_does_not_matter(trial: TargetJournal, rng: random.Random) -> None:
    """The harness learns of different ranks' events in any order: the verdict is the same for each, index numbers aside."""
    first, second = (check(SCENARIO, j.Journal(events)) for events in (trial.journal().events, interleaved(trial, rng)))
    assert first.outcome == second.outcome
    assert first.reason == second.reason
    assert _told(first.primary) == _told(second.primary)
    assert list(map(_told, first.others)) == list(map(_told, second.others))


def _told(violation: object) -> object:
    return violation and [
        getattr(violation, name) for name in ("invariant", "sentence", "attempt", "rank", "step", "error_type")
    ]


def interleaved(trial: TargetJournal, rng: random.Random) -> tuple[j.AnyEvent, ...]:
    """The same events with those of different ranks mingled anew between what the harness itself did."""
    result: list[j.AnyEvent] = []
    waiting: dict[int, list[j.AnyEvent]] = {}
    for event in trial.journal().events:
        rank = rank_of(event)
        if rank is not None and not isinstance(event, j.FaultInjected):
            waiting.setdefault(rank, []).append(event)
            continue
        while waiting:
            chosen = rng.choice(sorted(waiting))
            result.append(waiting[chosen].pop(0))
            if not waiting[chosen]:
                del waiting[chosen]
        result.append(event)
    return tuple(result)


@QUICK
@given(trials(), st.data())
def test_journals_cut_off_or_with_holes_are_judged_without_error(trial: TargetJournal, data: st.DataObject) -> None:
    """Cut off anywhere a journal is inconclusive; with events missing in the middle it still gets some verdict and words."""
    events = trial.journal().events
    length = data.draw(st.integers(0, len(events) - 1))
    assert check(SCENARIO, j.Journal(events[:length])).outcome == "inconclusive"
    keep = [event for event in events[1:] if data.draw(st.booleans())]
    holed = j.Journal((events[0], *keep, j.TrialEnded()))
    for invariant in BUILT_IN:
        invariant.judge(TargetView(SCENARIO, holed))
    assert "Verdict: " in explain(SCENARIO, holed)


@QUICK
@given(trials(), st.data())
def test_no_invariant_raises_on_part_of_a_journal_or_with_ranks_confused(
    trial: TargetJournal, data: st.DataObject
) -> None:
    """Each invariant alone judges the beginning of a journal, and one whose events bear any ranks' numbers, without an error."""
    events = trial.journal().events
    begun = events[: data.draw(st.integers(1, len(events)))]
    numbers = data.draw(st.lists(st.integers(0, 3), min_size=4, max_size=4))
    confused = [_renumbered(event, numbers) for event in events]
    for told in (begun, tuple(confused)):
        view = TargetView(SCENARIO, j.Journal(tuple(told)))
        for invariant in BUILT_IN:
            invariant.judge(view)


def _renumbered(event: j.AnyEvent, numbers: list[int]) -> j.AnyEvent:
    """The same event of another rank."""
    rank, digest = getattr(event, "rank", None), getattr(event, "digest", None)
    if not isinstance(rank, int):
        return event
    held = {} if digest is None else {"digest": msgspec.structs.replace(digest, rank=numbers[rank])}
    return msgspec.structs.replace(event, rank=numbers[rank], **held)
