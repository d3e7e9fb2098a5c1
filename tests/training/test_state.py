"""The training state's two forms bring everything back, in the same world and in another."""

from __future__ import annotations

import copy

import pytest
import torch

from chaosckpt.model.digest import StateDigest, combine
from chaosckpt.training.digest import digest
from chaosckpt.training.loop import train_step
from tests.training.ranks import job_of, run_ranks

STRATEGIES = ["ddp", "fsdp2"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_loading_the_full_form_brings_everything_back(strategy):
    """A state that trained on, once loaded back, has every digest it had, and trains on to the same losses."""

    def life(rank: int) -> tuple[StateDigest, StateDigest, list[float], list[float]]:
        job = job_of(2, rank, strategy=strategy)
        train_step(job)
        shared, own = copy.deepcopy(job.state.state_dict()), copy.deepcopy(job.state.rank_state_dict())
        before = digest(job.state)
        first = [train_step(job).loss for _ in range(2)]
        job.state.load_state_dict(shared)
        job.state.load_rank_state_dict(own)
        return before, digest(job.state), first, [train_step(job).loss for _ in range(2)]

    for before, after, first, second in run_ranks(2, life).results:
        assert after == before
        assert second == first


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_loading_the_sharded_form_brings_everything_back(strategy):
    """The same for the form of torch's distributed checkpoint, into a job built afresh."""

    def life(rank: int) -> tuple[StateDigest, StateDigest, list[float], list[float]]:
        job = job_of(2, rank, strategy=strategy)
        train_step(job)
        saved, before = copy.deepcopy(job.state.sharded_state_dict()), digest(job.state)
        first = [train_step(job).loss for _ in range(2)]
        other = job_of(2, rank, attempt=1, strategy=strategy)
        other.state.load_sharded_state_dict(saved)
        return before, digest(other.state), first, [train_step(other).loss for _ in range(2)]

    for before, after, first, second in run_ranks(2, life).results:
        assert after == before
        assert second == first


def test_the_full_form_is_equal_on_every_rank_and_plain():
    """Under fsdp2, too, each rank's full form holds whole plain tensors, equal on all."""

    def life(rank: int) -> dict[str, torch.Tensor]:
        job = job_of(2, rank, strategy="fsdp2")
        train_step(job)
        full = job.state.state_dict()
        assert all(type(tensor) is torch.Tensor for tensor in full["model"].values())
        return dict(full["model"])

    first, second = run_ranks(2, life).results
    assert first["0.weight"].shape == (16, 16)
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2), (2, 3)])
def test_the_full_form_loads_in_another_world_size(strategy, before, after):
    """All but the random streams survives, and those are distinct and reproducible."""

    def saving(rank: int):
        job = job_of(before, rank, strategy=strategy)
        for _ in range(2):
            train_step(job)
        return job.state.state_dict(), job.state.rank_state_dict(), digest(job.state)

    saved = run_ranks(before, saving).results
    shared, own = saved[0][:2]

    def loading(rank: int) -> StateDigest:
        job = job_of(after, rank, attempt=1, strategy=strategy)
        job.state.load_state_dict(shared)
        job.state.load_rank_state_dict(own)
        return digest(job.state)

    loaded = combine(run_ranks(after, loading).results)
    original = combine([outcome[2] for outcome in saved])
    assert loaded.problems == original.problems == ()
    assert loaded.shared_parts() == original.shared_parts()
    assert all(sampler == original.samplers[0] for sampler in loaded.samplers)
    assert len({rng["torch"] for rng in loaded.rng}) == after
    assert all(stamp[1] == -1 for stamp in loaded.stamps)
    assert combine(run_ranks(after, loading).results).rng == loaded.rng


def test_a_stamp_tells_where_a_state_was_captured():
    """The stamp is -1 until the first step, then says attempt, step, rank and world size."""

    def life(rank: int) -> list[tuple[int, ...]]:
        job = job_of(2, rank, attempt=3)
        stamps = [digest(job.state).stamp]
        train_step(job)
        return [*stamps, digest(job.state).stamp]

    assert run_ranks(2, life).results == [[(3, -1, 0, 2), (3, 1, 0, 2)], [(3, -1, 1, 2), (3, 1, 1, 2)]]
