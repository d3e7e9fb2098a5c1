"""A rank's three random streams are captured exactly."""

from __future__ import annotations

import random

import numpy
import pytest
import torch

from chaosckpt.training.rng import RandomStreams


@pytest.fixture
def streams():
    """This process's streams, left afterwards as they were."""
    found = RandomStreams().state_dict()
    yield RandomStreams()
    RandomStreams().load_state_dict(found)


def draw() -> tuple[float, float, float, float]:
    # gauss() and standard_normal() make pairs and keep one: that one is state as well.
    return (float(torch.rand(())), random.random(), random.gauss(0, 1), float(numpy.random.standard_normal()))


def test_restored_streams_draw_the_same(streams):
    """After any number of draws, an odd number of normal ones included, the restored streams go on alike."""
    streams.seed(0, 0, 0)
    for _ in range(3):
        state = streams.state_dict()
        expected = [draw() for _ in range(3)]
        streams.load_state_dict(state)
        assert [draw() for _ in range(3)] == expected


def test_capturing_draws_nothing(streams):
    """A capture leaves the streams where they are."""
    streams.seed(0, 0, 0)
    expected = draw()
    streams.seed(0, 0, 0)
    streams.state_dict()
    assert draw() == expected


def test_seeds_are_distinct_by_rank_step_and_seed(streams):
    """Streams of different ranks, steps and jobs differ; the same arguments give the same streams."""
    drawn = {}
    for arguments in [(0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 10, 0), (0, 1, 10)]:
        streams.seed(*arguments)
        drawn[arguments] = draw()
        streams.seed(*arguments)
        assert draw() == drawn[arguments]
    for stream in range(4):
        assert len({values[stream] for values in drawn.values()}) == len(drawn)
