"""The data order is a function of the position alone."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from chaosckpt.training.state import Sampler


@given(dataset=st.integers(1, 30), data=st.data(), seed=st.integers(0, 5))
def test_each_sample_comes_once_an_epoch(dataset, data, seed):
    """Cut into epochs, the order holds each sample once in each, whatever the batch."""
    batch = data.draw(st.integers(1, dataset))
    sampler = Sampler(dataset, batch, seed)
    order = [index for _ in range(2 * dataset) for index in sampler.next_batch()]
    for epoch in range(2):
        assert sorted(order[epoch * dataset : (epoch + 1) * dataset]) == list(range(dataset))


def test_a_restored_position_goes_on_with_the_same_samples():
    """The position is all the state there is, in the middle of an epoch, too."""
    sampler = Sampler(10, 4, 1)
    for _ in range(3):
        sampler.next_batch()
    other = Sampler(10, 4, 1)
    other.load_state_dict(sampler.state_dict())
    assert [other.next_batch() for _ in range(4)] == [sampler.next_batch() for _ in range(4)]


def test_drawing_samples_leaves_the_random_streams_alone():
    """A new permutation must not move a rank's own stream, else restoring one would depend on the other."""
    before = torch.get_rng_state()
    Sampler(10, 4, 1).next_batch()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_position_over_other_data_is_refused():
    """A position means nothing in another data set or order, and the error says what differs."""
    sampler = Sampler(10, 4, 1)
    with pytest.raises(ValueError, match="captured over 12 samples with seed 1; this job has 10"):
        sampler.load_state_dict(Sampler(12, 4, 1).state_dict())
