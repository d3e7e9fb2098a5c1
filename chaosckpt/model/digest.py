"""Digests of training state: what was captured or loaded, in a form that the layout over ranks does not change."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

MODULUS = 1 << 128


class TensorDigest(msgspec.Struct, frozen=True):
    """One tensor's part on one rank: `rows` of `total` rows (of dimension 0), and the sum of their hashes.

    `sum` is 32 hexadecimal digits: the sum modulo 2**128 of blake2b(name, dtype, shape of a row, global row index,
    bytes of the row). The sums over the ranks of a sharded tensor add up to the sum of the same tensor held whole.
    """

    rows: int
    total: int
    sum: str

    @property
    def whole(self) -> bool:
        """True when this rank holds every row."""
        return self.rows == self.total


class StateDigest(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank holds, read from its live objects.

    Tensors are keyed by their name in the model, optimizer moments by `parameter/moment`. Scalars stay readable
    (`float:0.01`, `int:4`), so that a difference explains itself; `rng` and `sampler` belong to this rank. `stamp` is
    the provenance that this rank's part carries: (attempt, step, rank, world size) of its capture, with step -1 for a
    state that was never captured or whose own part was derived instead of loaded.
    """

    rank: int
    world_size: int
    params: dict[str, TensorDigest]
    optimizer: dict[str, TensorDigest]
    optimizer_scalars: dict[str, str]
    scheduler: dict[str, str]
    step: int
    rng: dict[str, str]
    sampler: dict[str, str]
    stamp: tuple[int, int, int, int]


class WorldDigest(msgspec.Struct, frozen=True, kw_only=True):
    """What all ranks of one world hold together; equal for equal training state, however it is sharded.

    `params`, `optimizer`, `optimizer_scalars`, `scheduler` and `step` compare across world sizes. `rng`, `samplers` and
    `stamps` hold one entry a rank and compare within one world size only. `problems` are sentences: ranks that disagree
    about a replicated value, rows that no rank or two ranks hold. A value that ranks disagree on reads `differs`, and
    the step -1.
    """

    params: dict[str, str]
    optimizer: dict[str, str]
    optimizer_scalars: dict[str, str]
    scheduler: dict[str, str]
    step: int
    rng: tuple[dict[str, str], ...]
    samplers: tuple[dict[str, str], ...]
    stamps: tuple[tuple[int, int, int, int], ...]
    problems: tuple[str, ...]

    def shared_parts(self) -> tuple[object, ...]:
        """The parts that compare across world sizes, in one value for ==."""
        return (self.params, self.optimizer, self.optimizer_scalars, self.scheduler, self.step)


def fingerprint(part: object) -> str:
    """16 hexadecimal digits of a part of a digest, equal for equal values."""
    return hashlib.blake2b(msgspec.json.encode(part, order="deterministic"), digest_size=8).hexdigest()


def part_fingerprints(world: WorldDigest) -> dict[str, str]:
    """Fingerprints of the parts that compare across world sizes, and of the data position, by their names for people."""
    return {
        "parameters": fingerprint(world.params),
        "optimizer": fingerprint((world.optimizer, world.optimizer_scalars)),
        "scheduler": fingerprint(world.scheduler),
        "step": fingerprint(world.step),
        "sampler": fingerprint(world.samplers[0]),
    }


DIFFERS = "differs"


def combine(digests: Sequence[StateDigest]) -> WorldDigest:
    """The digest of one world, from the digests of all its ranks in any order.

    Raises ValueError when the digests aren't exactly one for each rank of one world.
    """
    ranks = sorted(digests, key=lambda digest: digest.rank)
    sizes = {digest.world_size for digest in ranks}
    if len(sizes) != 1 or [digest.rank for digest in ranks] != list(range(len(ranks))) or sizes != {len(ranks)}:
        described = ", ".join(f"rank {digest.rank} of {digest.world_size}" for digest in ranks) or "none"
        raise ValueError(f"one digest for each rank of one world is needed; given: {described}")
    problems: list[str] = []
    steps = {digest.step for digest in ranks}
    if len(steps) > 1:
        problems.append("step: " + _by_rank([str(digest.step) for digest in ranks]))
    return WorldDigest(
        params=_tensors([digest.params for digest in ranks], "parameter", problems),
        optimizer=_tensors([digest.optimizer for digest in ranks], "optimizer", problems),
        optimizer_scalars=_scalars([digest.optimizer_scalars for digest in ranks], "optimizer", problems),
        scheduler=_scalars([digest.scheduler for digest in ranks], "scheduler", problems),
        step=steps.pop() if len(steps) == 1 else -1,
        rng=tuple(digest.rng for digest in ranks),
        samplers=tuple(digest.sampler for digest in ranks),
        stamps=tuple(digest.stamp for digest in ranks),
        problems=tuple(problems),
    )


def _by_rank(values: Sequence[str]) -> str:
    return ", ".join(f"rank {rank} has {value}" for rank, value in enumerate(values))


def _tensors(parts: Sequence[Mapping[str, TensorDigest]], kind: str, problems: list[str]) -> dict[str, str]:
    combined = {}
    for name in sorted({name for part in parts for name in part}):
        held = [part.get(name) for part in parts]
        present = [digest for digest in held if digest is not None]
        label = f"{kind} {name}"
        if len(present) < len(held):
            missing = ", ".join(str(rank) for rank, digest in enumerate(held) if digest is None)
            problems.append(f"{label}: missing on rank {missing}")
            combined[name] = DIFFERS
        else:
            combined[name] = _one_tensor(present, label, problems)
    return combined


def _one_tensor(held: Sequence[TensorDigest], label: str, problems: list[str]) -> str:
    """`rows:sum` of one tensor. Whole on every rank means replicated; anything else means sharded."""
    if len({digest.total for digest in held}) > 1:
        problems.append(f"{label}: rows in all: " + _by_rank([str(digest.total) for digest in held]))
        return DIFFERS
    total = held[0].total
    if all(digest.whole for digest in held):
        if len({digest.sum for digest in held}) > 1:
            problems.append(f"{label}: " + _by_rank([digest.sum[:8] for digest in held]))
            return DIFFERS
        return f"{total}:{held[0].sum}"
    covered = sum(digest.rows for digest in held)
    if covered != total:
        problems.append(f"{label}: the ranks hold {covered} rows of {total}")
        return DIFFERS
    return f"{total}:{sum(int(digest.sum, 16) for digest in held) % MODULUS:032x}"


def _scalars(parts: Sequence[Mapping[str, str]], kind: str, problems: list[str]) -> dict[str, str]:
    combined = {}
    for name in sorted({name for part in parts for name in part}):
        values = [part.get(name, "nothing") for part in parts]
        if len(set(values)) > 1:
            problems.append(f"{kind} {name}: " + _by_rank(values))
            combined[name] = DIFFERS
        else:
            combined[name] = values[0]
    return combined
