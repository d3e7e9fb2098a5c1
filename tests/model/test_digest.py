"""Combining the digests of a world's ranks."""

from __future__ import annotations

import msgspec
import pytest

from chaosckpt.model.digest import MODULUS, StateDigest, TensorDigest, WorldDigest, combine


def part(rank: int, world_size: int, tensor: TensorDigest, step: int = 4, lr: str = "float:0.1") -> StateDigest:
    return StateDigest(
        rank=rank,
        world_size=world_size,
        params={"w": tensor},
        optimizer={},
        optimizer_scalars={"0.lr": lr},
        scheduler={},
        step=step,
        rng={"torch": str(rank)},
        sampler={"position": "int:8"},
        stamp=(0, step, rank, world_size),
    )


def tensor(rows: int, total: int, value: int) -> TensorDigest:
    return TensorDigest(rows, total, f"{value:032x}")


def test_sharded_and_replicated_worlds_of_the_same_values_are_equal():
    """One rank that holds all, two that hold the same, and three that hold parts give one value."""
    alone = combine([part(0, 1, tensor(4, 4, 100))])
    replicated = combine([part(rank, 2, tensor(4, 4, 100)) for rank in (1, 0)])
    shards = [tensor(2, 4, MODULUS - 50), tensor(2, 4, 150), tensor(0, 4, 0)]
    sharded = combine([part(rank, 3, shard) for rank, shard in enumerate(shards)])
    assert alone.shared_parts() == replicated.shared_parts() == sharded.shared_parts()
    assert alone.problems == replicated.problems == sharded.problems == ()
    assert [stamp[2] for stamp in sharded.stamps] == [0, 1, 2]


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        (part(1, 2, tensor(4, 4, 101)), "parameter w: rank 0 has 00000000, rank 1 has 00000000"),
        (part(1, 2, tensor(3, 4, 1)), "parameter w: the ranks hold 7 rows of 4"),
        (part(1, 2, tensor(5, 5, 100)), "parameter w: rows in all: rank 0 has 4, rank 1 has 5"),
        (part(1, 2, tensor(4, 4, 100), step=2), "step: rank 0 has 4, rank 1 has 2"),
        (part(1, 2, tensor(4, 4, 100), lr="float:0.2"), "optimizer 0.lr: rank 0 has float:0.1, rank 1 has float:0.2"),
        (msgspec.structs.replace(part(1, 2, tensor(4, 4, 100)), params={}), "parameter w: missing on rank 1"),
    ],
)
def test_disagreement_is_a_sentence_and_never_a_value(second, sentence):
    """What the ranks disagree on reads `differs` (the step -1), and the sentence says who holds what."""
    world = combine([part(0, 2, tensor(4, 4, 100)), second])
    assert world.problems == (sentence,)
    assert "differs" in {*world.params.values(), *world.optimizer_scalars.values()} or world.step == -1


@pytest.mark.parametrize("ranks", [[], [0, 0], [1], [0, 2]])
def test_a_world_with_missing_or_doubled_ranks_is_refused(ranks):
    """A comparison of an incomplete world would pass by accident."""
    with pytest.raises(ValueError, match="one digest for each rank"):
        combine([part(rank, 2, tensor(4, 4, 100)) for rank in ranks])


def test_digests_travel_as_json():
    """The journal stores both kinds and reads them back equal."""
    state = part(0, 1, tensor(4, 4, 100))
    world = combine([state])
    assert msgspec.json.decode(msgspec.json.encode(state), type=StateDigest) == state
    assert msgspec.json.decode(msgspec.json.encode(world), type=WorldDigest) == world
