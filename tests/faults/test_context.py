"""Contexts: what is offered to a fault kind that draws, and what isn't."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext, torn_writes
from chaosckpt.model.fault import Trigger
from chaosckpt.model.golden_index import GoldenIndex
from tests.strategies.dcp_model import MAIN, census, scenario
from tests.strategies.kinds import KINDS

CENSUS = census()
SCENARIO = scenario()


def context(resumed_from: int | None = None, **fields) -> FaultContext:
    run = CENSUS.run(MAIN, resumed_from)
    assert run is not None
    return FaultContext(scenario=SCENARIO, census=CENSUS, golden=GoldenIndex(run, CENSUS.main), **fields)


RECOVERING = context(2, attempt=1, interrupted=4)


@pytest.mark.parametrize("where", [context(), RECOVERING])
def test_every_place_of_interest_is_among_the_candidates(where):
    """A category holds candidates only, and each holds some where the run has such places."""
    found = where.categories()
    assert set(found["any"]) == set(where.candidates)
    assert all(set(indices) <= set(where.candidates) for indices in found.values())
    assert ("recovery" in found) == (where.attempt > 0)


def test_the_save_that_was_interrupted_comes_again():
    """`resave` is the save of the step in which the attempt before was stopped."""
    steps = {RECOVERING.golden.points[i].label.step for i in RECOVERING.categories()["resave"]}
    assert steps == {4}


def test_around_a_commit_stand_its_neighbours():
    """The committing operation, the one before it, and the first after it on every rank are offered."""
    where = context()
    commit = where.golden.commits[4]
    around = where.categories()["commit"]
    own = where.golden.of_rank(0)
    place = where.golden.place(commit)
    assert {own[place - 1], commit, own[place + 1]} <= set(around)
    first_after = where.golden.of_rank(1)[where.golden.reach(commit)[1]]
    assert where.golden.points[first_after].address.op == "mkdir"
    assert first_after in around


def test_a_neighbouring_run_offers_later_saves_only():
    """Where the census hasn't the very run, its recovery has other addresses; what is saved later has the same."""
    where = context(2, attempt=1, exact=False)
    assert {where.golden.points[i].label.step for i in where.candidates} == {4, 6}


def test_before_an_ending_fault_only_what_is_surely_before():
    """A fault that ends nothing may not be overtaken by the one that ends the attempt."""
    where = context()
    stop = where.golden.commits[2]
    narrowed = where.narrowed([Trigger(where.golden.points[stop].address)])
    assert narrowed.candidates
    assert all(where.golden.surely_before(i, stop) for i in narrowed.candidates)


@pytest.mark.parametrize("name", sorted(KINDS))
@given(data=st.data())
@settings(max_examples=25, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_kind_strikes_within_the_scene(name, data):
    """What a kind draws names candidates of the context only, that it accepts, and torn only where a part can be missing."""
    where = data.draw(st.sampled_from([context(), RECOVERING]))
    strategy = KINDS[name].strategy(where)
    if strategy is None:
        return
    fault = data.draw(strategy)
    for trigger in fault.triggers():
        i = where.golden.index(trigger.address)
        assert i in where.candidates
        point = where.golden.points[i]
        assert fault.accepts(point.address.op)
        if trigger.when == "torn":
            assert torn_writes(point)
            assert 0 < trigger.torn_bytes < point.length
    assert not fault.triggers() or where.golden.at_rest(fault.triggers()) is not None


def test_kinds_that_strike_operations_offer_recovery_too():
    """Each of them can strike while a job recovers, by itself, without luck."""
    recovery = context(2, attempt=1, recovery_only=True)
    able = {name for name, kind in KINDS.items() if kind.strategy(recovery) is not None}
    assert {"cut", "sigkill", "sigterm", "node-loss", "errno", "latency"} <= able


def test_only_a_cut_is_enumerated():
    """Each operation before and after, and each write of two bytes or more torn in the middle, on its own."""
    where = context()
    writes = sum(torn_writes(point) for point in where.golden.points)
    found = {name: len(list(kind.singles(where))) for name, kind in KINDS.items()}
    assert found.pop("cut") == 2 * len(where.golden.points) + writes
    assert set(found.values()) == {0}
