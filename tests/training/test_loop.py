"""The training job: reproducible, real, and the same data for any number of ranks."""

from __future__ import annotations

import copy

import pytest

from chaosckpt.model.digest import combine
from chaosckpt.training.digest import digest
from chaosckpt.training.loop import train_step
from tests.training.ranks import job_of, run_ranks


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_two_runs_are_equal_bitwise(strategy, world_size):
    """Equal settings give equal losses and digests; parameters agree over the ranks and change with every step."""

    def life(rank: int):
        job = job_of(world_size, rank, strategy=strategy)
        outcome = []
        for _ in range(3):
            report = train_step(job)
            outcome.append((report, digest(job.state)))
        return outcome

    first, second = run_ranks(world_size, life).results, run_ranks(world_size, life).results
    assert first == second
    worlds = [combine([outcome[step][1] for outcome in first]) for step in range(3)]
    assert all(world.problems == () for world in worlds)
    assert len({world.params["0.weight"] for world in worlds}) == 3
    assert len({world.rng[0]["numpy"] for world in worlds}) == 3
    for outcome in first:
        assert outcome[0][0].loss > 0


@pytest.mark.parametrize("world_size", [3, 4])
@pytest.mark.parametrize("hidden", [16, 600])
def test_a_restored_run_of_many_ranks_goes_on_bitwise(world_size, hidden):
    """DDP lays out its buckets anew after its first step; the sums over three ranks and more must not depend on it."""

    def life(rank: int):
        job = job_of(world_size, rank, hidden=hidden)
        for _ in range(3):
            train_step(job)
        shared, own = copy.deepcopy((job.state.state_dict(), job.state.rank_state_dict()))
        other = job_of(world_size, rank, attempt=1, hidden=hidden)
        other.state.load_state_dict(shared)
        other.state.load_rank_state_dict(own)
        restored = [train_step(other).loss for _ in range(2)]
        params = digest(other.state).params
        job.state.load_rank_state_dict(own)
        job.state.sampler.load_state_dict(own["sampler"])
        return restored == [train_step(job).loss for _ in range(2)], params == digest(job.state).params

    assert run_ranks(world_size, life).results == [(True, True)] * world_size


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_the_ranks_share_out_the_global_batch(world_size):
    """Together the ranks consume the same samples at every step, whatever their number; a share may be empty."""

    def life(rank: int):
        job = job_of(world_size, rank, batch=2, dataset=5)
        return [train_step(job).samples for _ in range(4)]

    shares = run_ranks(world_size, life).results
    alone = run_ranks(
        1, lambda _: [train_step(job).samples for job in [job_of(1, 0, batch=2, dataset=5)] for _ in range(4)]
    )
    for step, batch in enumerate(alone.results[0]):
        together = [sample for share in shares for sample in share[step]]
        assert sorted(together) == sorted(batch)
        assert len(batch) == 2


def test_a_job_for_another_group_is_refused():
    """A rank or world size that the process group doesn't have is an error that names both."""
    (failure,) = run_ranks(1, lambda _: job_of(2, 1)).failures
    assert failure.kind == "ValueError"
    assert "rank 0 of 1; the job was built for 1 of 2" in failure.text
