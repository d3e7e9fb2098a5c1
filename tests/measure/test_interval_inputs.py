"""What a measurement yields for the advice about an interval."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chaosckpt.measure.failure_rate import given
from chaosckpt.measure.interval import IntervalInputs, measured_inputs
from chaosckpt.measure.measurement import Contention, Spread
from tests.measure.pages.measurements import CAPACITY, FIGURES, RESTARTS

RATE = given(3600.0)


def test_the_slowest_rank_counts():
    """Stall and completion are the slowest rank's, save by save; beside training a save took longer still."""
    found = measured_inputs(FIGURES, RESTARTS, CAPACITY, RATE)
    assert found.stall_seconds == pytest.approx(0.315)
    assert found.completion_seconds == pytest.approx(3.75)
    assert found.slowest_completion_seconds == pytest.approx(3.9)
    assert found.step_seconds == pytest.approx(0.10)


def test_slower_steps_cost_training():
    """Steps of 130 ms in place of 100 lose three thirteenths of the time that a save is written behind."""
    found = measured_inputs(FIGURES, RESTARTS, CAPACITY, RATE)
    assert found.slowdown_seconds == pytest.approx((3.75 - 0.315) * 3 / 13)
    assert found.costs().lost_seconds == pytest.approx(0.315 + found.slowdown_seconds)


def test_faster_steps_gain_nothing():
    """Steps that happened to be faster during a save are no gain."""
    faster = tuple(replace(figure, step_seconds_during_save=Spread((0.05,))) for figure in FIGURES)
    assert measured_inputs(faster, RESTARTS, CAPACITY, RATE).slowdown_seconds == 0


def test_a_fresh_allocation_has_a_cold_cache():
    """The restart is the one with a cold cache where there is one, else the warm one, else nothing."""
    assert measured_inputs(FIGURES, RESTARTS, CAPACITY, RATE).restart_seconds == pytest.approx(4.62)
    assert measured_inputs(FIGURES, RESTARTS[1:], CAPACITY, RATE).restart_seconds == pytest.approx(3.82)
    assert measured_inputs(FIGURES, (), CAPACITY, RATE).restart_seconds == 0


def test_neighbours_count_for_the_backlog():
    """Saves must not pile up while a neighbour writes, too: the longest completion is the one beside it."""
    beside = Contention(neighbours=1, completion_seconds=Spread((5.0, 7.0)), ratio=2.0)
    found = measured_inputs(FIGURES, RESTARTS, CAPACITY, RATE, (beside,))
    assert found.slowest_completion_seconds == 7.0
    assert found.completion_seconds == pytest.approx(3.75)
    assert found.bounds().low_seconds == 7.0


def test_a_synchronous_save():
    """A save that is complete when it returns writes nothing behind, and slows no step."""
    stalled = tuple(
        replace(
            figure,
            completion_seconds=figure.stall_seconds,
            completion_while_training_seconds=None,
            step_seconds_during_save=None,
        )
        for figure in FIGURES
    )
    costs = measured_inputs(stalled, RESTARTS, CAPACITY, RATE).costs()
    assert (costs.write_behind_seconds, costs.slowdown_seconds) == (0, 0)
    assert costs.completion_seconds == costs.stall_seconds


def test_what_is_complete_when_it_returns_writes_nothing_behind():
    """The moment in which the result of a synchronous save is observed is no writing: saves cannot pile up, and the limit says so."""
    found = measured_inputs(FIGURES, RESTARTS, CAPACITY, RATE, asynchronous=False)
    assert found.costs().write_behind_seconds == 0
    assert "saves cannot pile up" in found.bounds().limits[0].sentence


def test_storage_and_needs_come_along():
    """What is retained, what is free and what is asked for reach the limits."""
    needs = measured_inputs(FIGURES, RESTARTS, CAPACITY, RATE, tolerated_loss_seconds=60.0, keep_seconds=600.0).needs
    assert (needs.tolerated_loss_seconds, needs.keep_seconds) == (60.0, 600.0)
    assert (needs.checkpoint_bytes, needs.retained_generations, needs.space_bytes) == (100_003_840, 2, 20_000_000_000)


def test_a_completion_is_never_shorter_than_the_stall():
    """A completion that was measured below the stall is taken for it."""
    costs = IntervalInputs(failure_rate=RATE, stall_seconds=2.0, completion_seconds=1.0, restart_seconds=0.0).costs()
    assert costs.completion_seconds == 2.0
