"""What bounds an interval."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from chaosckpt.measure.interval import advise
from chaosckpt.measure.limits import Needs
from tests.measure.asked import BASE, HOUR, inputs


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(inputs())
def test_limits_are_respected(asked):
    """Every limit that holds bounds the advised interval; one that doesn't hold is told in a note."""
    advice = advise(asked)
    for limit in advice.limits:
        if not limit.holds:
            assert limit.sentence in advice.notes
        elif limit.bound == "at least":
            assert limit.seconds is not None
            assert advice.seconds >= limit.seconds
        elif limit.bound == "at most":
            assert limit.seconds is not None
            assert advice.seconds <= limit.seconds
            assert advice.worst_loss_seconds <= asked.needs.tolerated_loss_seconds * (1 + 1e-9)
    assert advice.near_seconds[0] <= advice.seconds <= advice.near_seconds[1]


def test_the_backlog_limit():
    """Saves that take longer than the optimal interval set it: as long as the longest completion that was seen."""
    advice = advise(replace(BASE, completion_seconds=2000.0, slowest_completion_seconds=2500.0))
    assert advice.optimum_seconds == pytest.approx(1995.0), "there saves just don't wait"
    assert advice.seconds == 2500.0


def test_a_tolerated_loss_shortens_the_interval():
    """200 tolerated seconds, less a save and a completion, are left for the interval, and weigh most."""
    advice = advise(replace(BASE, needs=Needs(tolerated_loss_seconds=200.0)))
    assert advice.seconds == 200.0 - 60.0 - 5.0
    assert advice.worst_loss_seconds == 200.0
    assert advice.dominant == "tolerated loss"


def test_a_tolerated_loss_that_can_not_be_kept():
    """A loss shorter than two completions can't be kept: that is said, with what the least would be."""
    advice = advise(replace(BASE, needs=Needs(tolerated_loss_seconds=100.0)))
    assert advice.seconds == 60.0
    (limit,) = (limit for limit in advice.limits if limit.name == "tolerated loss")
    assert not limit.holds
    assert "a loss of 1 min 40 s is tolerated" in limit.sentence
    assert "2 min 5 s old" in limit.sentence


def test_space_for_what_is_retained():
    """Three retained checkpoints and a fourth being written don't fit the space of three and a half."""
    needs = Needs(checkpoint_bytes=10**9, retained_generations=3, space_bytes=35 * 10**8)
    advice = advise(replace(BASE, needs=needs))
    limit = advice.limits[-1]
    assert (limit.name, limit.holds) == ("storage", False)
    assert "3 retained checkpoints and the one being written take 4 GB; 3.5 GB are free" in advice.notes[-1]
    assert advise(replace(BASE, needs=replace(needs, space_bytes=4 * 10**9))).limits[-1].holds


def test_what_is_never_removed_fills_the_space():
    """Where no checkpoint was removed the advice says after how many saves and how long the space is full."""
    needs = Needs(checkpoint_bytes=10**9, retained_generations=3, retires=False, space_bytes=10**10)
    limit = advise(replace(BASE, needs=needs)).limits[-1]
    assert limit.holds
    assert "full after 10 saves" in limit.sentence


def test_what_saves_leave_behind_fills_the_space():
    """Where each save leaves something behind, space that holds what is retained is full in the end, and the limit says when."""
    needs = Needs(checkpoint_bytes=10**9, retained_generations=3, left_bytes=10**7, space_bytes=5 * 10**9)
    sentence = advise(replace(BASE, needs=needs)).limits[-1].sentence
    assert "5 GB are free, and the storage is full after 100 saves, " in sentence
    assert sentence.endswith("since each save leaves 10 MB behind")


def test_checkpoints_kept_by_age():
    """A day of checkpoints in the space of eleven, one of them being written, needs an interval of a tenth of a day."""
    needs = Needs(checkpoint_bytes=10**9, space_bytes=11 * 10**9, keep_seconds=24 * HOUR)
    advice = advise(replace(BASE, needs=needs))
    assert advice.seconds == pytest.approx(2.4 * HOUR - 5.0)
    hopeless = advise(replace(BASE, needs=replace(needs, space_bytes=10**9)))
    assert "never fit" in hopeless.notes[-1]
    assert hopeless.seconds == hopeless.optimum_seconds
