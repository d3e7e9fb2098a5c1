"""The digest does not see the layout, and sees everything else."""

from __future__ import annotations

from itertools import pairwise

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from chaosckpt.model.digest import MODULUS
from chaosckpt.training.digest import canonical, digest, row_sum, tensor_digest
from chaosckpt.training.loop import train_step
from tests.training.ranks import job_of, run_ranks

DTYPES = [torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.uint8]
shapes = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    shape, dtype = draw(shapes), draw(st.sampled_from(DTYPES))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1 << 20)))
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * 200).to(dtype)


def sum_of(tensor: Tensor, name: str = "w") -> str:
    return tensor_digest(name, tensor).sum


@settings(deadline=None)
@given(tensor=tensors(), extra=st.integers(1, 3))
def test_the_sums_of_shards_add_up_to_the_whole(tensor, extra):
    """Rows split over any number of ranks, some without a row, have sums that add up to the sum of the whole tensor."""
    whole = tensor_digest("w", tensor)
    ranks = tensor.shape[0] + extra
    bounds = [min(tensor.shape[0], cut) for cut in range(ranks + 1)]
    parts = [row_sum("w", tensor, first, tensor[first:last]) for first, last in pairwise(bounds)]
    assert sum(parts) % MODULUS == int(whole.sum, 16)
    assert whole.rows == whole.total == tensor.shape[0]


@settings(deadline=None)
@given(tensor=tensors(), data=st.data())
def test_one_flipped_bit_changes_the_sum(tensor, data):
    """Any single flipped bit shows."""
    flipped = tensor.clone()
    view = flipped.view(torch.uint8).reshape(-1)
    place = data.draw(st.integers(0, view.numel() - 1))
    view[place] ^= 1 << data.draw(st.integers(0, 7))
    assert sum_of(flipped) != sum_of(tensor)


@settings(deadline=None)
@given(tensor=tensors())
def test_order_of_rows_name_dtype_and_row_shape_count(tensor):
    """Swapped rows, another name, another type with the same bytes, or another row shape are another digest."""
    assert sum_of(tensor) == sum_of(tensor.clone())
    assert sum_of(tensor, "v") != sum_of(tensor, "w")
    if tensor.shape[0] > 1 and not torch.equal(tensor[0], tensor[-1]):
        assert sum_of(tensor.flip(0)) != sum_of(tensor)
    assert sum_of(tensor.unsqueeze(-1)) != sum_of(tensor)
    if tensor.dtype == torch.float64:
        assert sum_of(tensor.view(torch.int64)) != sum_of(tensor)


def test_memory_layout_does_not_count():
    """A transposed view and its contiguous copy have the same values, hence the same digest."""
    tensor = torch.arange(12.0).reshape(3, 4).t()
    assert tensor_digest("w", tensor) == tensor_digest("w", tensor.contiguous())


def test_a_scalar_tensor_is_one_row_and_no_vector():
    """The optimizer's step counter is a 0-d tensor; it is not mistaken for a vector of one."""
    scalar = tensor_digest("step", torch.tensor(3.0))
    assert (scalar.rows, scalar.total) == (1, 1)
    assert scalar != tensor_digest("step", torch.tensor([3.0]))


@pytest.mark.parametrize("world_size", [2, 3])
def test_a_sharded_model_digests_like_the_whole_one(world_size):
    """The parts that fsdp2's ranks hold, the empty ones included, sum up to the digest of the gathered tensors."""

    def life(rank: int):
        job = job_of(world_size, rank, strategy="fsdp2")
        train_step(job)
        return digest(job.state), {name: sum_of(value, name) for name, value in job.state.state_dict()["model"].items()}

    outcomes = run_ranks(world_size, life).results
    for name, whole in outcomes[0][1].items():
        parts = [outcome[0].params[name] for outcome in outcomes]
        assert sum(part.rows for part in parts) == parts[0].total
        assert sum(int(part.sum, 16) for part in parts) % MODULUS == int(whole, 16)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda state: state.model[0].weight.data.mul_(2), "params"),
        (lambda state: next(iter(state.optimizer.state.values()))["exp_avg"].add_(1), "optimizer"),
        (lambda state: next(iter(state.optimizer.state.values()))["step"].add_(1), "optimizer"),
        (lambda state: state.optimizer.param_groups[0].update(lr=0.5), "optimizer_scalars"),
        (lambda state: state.scheduler.load_state_dict({"last_epoch": 9}), "scheduler"),
        (lambda state: setattr(state, "step", 9), "step"),
        (lambda _: torch.rand(1), "rng"),
        (lambda state: state.sampler.next_batch(), "sampler"),
        (lambda state: state.stamp.add_(1), "stamp"),
    ],
)
def test_each_part_shows_its_own_change_only(change, part):
    """A change of one component is seen in that component of the digest and in no other."""

    def life(rank: int):
        job = job_of(1, rank)
        train_step(job)
        before = digest(job.state)
        change(job.state)
        return before, digest(job.state)

    ((before, after),) = run_ranks(1, life).results
    changed = {name for name in before.__struct_fields__ if getattr(before, name) != getattr(after, name)}
    assert changed == {part}


def test_canonical_text_tells_types_apart():
    """1, 1.0, True and '1' differ; dictionaries don't depend on their order; lists and tuples read alike."""
    assert len({canonical(value) for value in (1, 1.0, True, "1", None)}) == 5
    assert canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1})
    assert canonical((0.9, 0.999)) == canonical([0.9, 0.999])
