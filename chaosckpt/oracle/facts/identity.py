"""Identification: which captured state the live objects show after a recovery, part by part."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from chaosckpt.model.digest import DIFFERS, StateDigest, TensorDigest, WorldDigest, combine
from chaosckpt.oracle.facts.saves import Save

Key = tuple[str, str]
"""("params" or "optimizer", name of the tensor)."""


@dataclass(frozen=True)
class Holding:
    """What one holder has, comparable across layouts: `tensors` as `rows:sum`, the small parts as they are."""

    tensors: dict[Key, str]
    parts: dict[str, Mapping[str, str]]


@dataclass(frozen=True)
class Holder:
    """Whose loaded state is identified: one rank that holds every tensor whole, or all ranks of a sharded world
    together."""

    name: str
    ranks: tuple[int, ...]
    holding: Holding
    digests: dict[int, StateDigest]
    problems: tuple[str, ...] = ()

    @property
    def world_size(self) -> int:
        return next(iter(self.digests.values())).world_size


class Capture:
    """What was captured when a save started, in comparable form."""

    def __init__(self, save: Save) -> None:
        self.save = save

    @functools.cached_property
    def holdings(self) -> tuple[Holding, ...]:
        """One for each rank that held everything whole, and one for the world where every rank had started."""
        whole = [of_rank(digest) for digest in self.save.digests.values() if holds_whole(digest)]
        world = together(self.save.digests.values())
        return (*whole, *([] if world is None else [of_world(world)]))

    @functools.cached_property
    def names(self) -> frozenset[Key]:
        return frozenset(key for holding in self.holdings for key in holding.tensors)

    def has_tensor(self, key: Key, value: str) -> bool:
        return value != DIFFERS and any(holding.tensors.get(key) == value for holding in self.holdings)

    def has_part(self, part: str, value: Mapping[str, str]) -> bool:
        return any(holding.parts[part] == value for holding in self.holdings)

    def has_sampler(self, position: Mapping[str, str]) -> bool:
        """True when a rank, whichever, captured this data position."""
        return any(digest.sampler == position for digest in self.save.digests.values())

    def rank_part(self, rank: int, part: str) -> Mapping[str, str] | None:
        digest = self.save.digests.get(rank)
        return None if digest is None else rank_part(digest, part)

    def __str__(self) -> str:
        return str(self.save)


def holds_whole(digest: StateDigest) -> bool:
    """True when this rank holds every tensor whole."""
    return all(tensor.whole for tensor in (*digest.params.values(), *digest.optimizer.values()))


def rank_part(digest: StateDigest, part: str) -> Mapping[str, str]:
    """`rng` or `sampler` of one rank."""
    return digest.rng if part == "rng" else digest.sampler


def together(digests: Iterable[StateDigest]) -> WorldDigest | None:
    """The digest of the world; None where a rank's is missing."""
    try:
        return combine(list(digests))
    except ValueError:
        return None


def of_rank(digest: StateDigest) -> Holding:
    """What one rank has; values of sharded tensors are those of its own rows."""
    tensors = {("params", name): _text(tensor) for name, tensor in digest.params.items()}
    tensors |= {("optimizer", name): _text(tensor) for name, tensor in digest.optimizer.items()}
    return Holding(tensors, _parts(digest))


def of_world(world: WorldDigest) -> Holding:
    """What all ranks have together."""
    tensors = {("params", name): value for name, value in world.params.items()}
    tensors |= {("optimizer", name): value for name, value in world.optimizer.items()}
    return Holding(tensors, _parts(world))


def _text(tensor: TensorDigest) -> str:
    return f"{tensor.total}:{tensor.sum}"


def _parts(digest: StateDigest | WorldDigest) -> dict[str, Mapping[str, str]]:
    return {
        "optimizer settings": digest.optimizer_scalars,
        "scheduler": digest.scheduler,
        "step": {"step": str(digest.step)},
    }


def holders(digests: Sequence[StateDigest]) -> list[Holder]:
    """Whose states can be identified. Sharded tensors can be only where every rank of the world recovered."""
    if all(holds_whole(digest) for digest in digests):
        return [Holder(f"rank {d.rank}", (d.rank,), of_rank(d), {d.rank: d}) for d in digests]
    world = together(digests)
    if world is None:
        return []
    ranks = tuple(sorted(digest.rank for digest in digests))
    return [Holder("the ranks together", ranks, of_world(world), {d.rank: d for d in digests}, world.problems)]


@dataclass(frozen=True)
class Deviation:
    """One component that isn't the identified capture's. `origin` names the other capture that it is a part of, if one is known.

    `torn`: only some of the component's values are wrong, so that its bytes are damaged rather than absent. `alike` are other
    captures that have the same value, where that may be a coincidence: a halved data position is that of an earlier save, too.
    """

    component: str
    detail: str
    origin: str = ""
    torn: bool = False
    rank: int | None = None
    alike: tuple[str, ...] = ()

    @property
    def mixed(self) -> bool:
        return bool(self.origin) or self.torn


@dataclass(frozen=True)
class Identity:
    """What a holder shows: the captures whose parameters it has (none: a mix, or torn bytes, which `mixture`
    describes).

    `captures` are those that it equals best, and `deviations` what differs from the first of them; without any the
    state is exactly theirs.
    """

    holder: Holder
    captures: tuple[Capture, ...]
    deviations: tuple[Deviation, ...] = ()
    mixture: str = ""
    slug: str = ""

    @property
    def exact(self) -> bool:
        return bool(self.captures) and not self.deviations

    @property
    def saves(self) -> tuple[Save, ...]:
        return tuple(capture.save for capture in self.captures)


def identify(holder: Holder, captures: Sequence[Capture], said: Collection[int] = ()) -> Identity:
    """Find the captures that the holder's live state equals; explain in parts where none does.

    `said` are the steps that this state is said to be of.
    """
    params = {key: value for key, value in holder.holding.tensors.items() if key[0] == "params"}
    matching = [c for c in captures if _names(c, "params") == params.keys() and _all_in(c, params)]
    if not matching:
        words, slug = _mixture(holder, params, captures)
        return Identity(holder, (), mixture=words, slug=slug)
    others = [capture for capture in captures if capture not in matching]
    judged = [(capture, _attributed(_deviations(holder, capture, others), others, said)) for capture in matching]
    fewest = min(len(deviations) for _, deviations in judged)
    best = [(capture, deviations) for capture, deviations in judged if len(deviations) == fewest]
    best.sort(key=lambda pair: pair[0].save.key, reverse=True)
    return Identity(holder, tuple(capture for capture, _ in best), best[0][1])


def _names(capture: Capture, component: str) -> set[Key]:
    return {key for key in capture.names if key[0] == component}


def _all_in(capture: Capture, tensors: Mapping[Key, str]) -> bool:
    """True when one holder of the capture has all these values at once."""
    return any(
        all(holding.tensors.get(key) == value != DIFFERS for key, value in tensors.items())
        for holding in capture.holdings
    )


def _deviations(holder: Holder, capture: Capture, others: Sequence[Capture]) -> list[Deviation]:
    found = list(_optimizer(holder, capture, others))
    for part, value in holder.holding.parts.items():
        if not capture.has_part(part, value):
            alike = tuple(str(other) for other in others if other.has_part(part, value))
            expected = capture.holdings[0].parts[part]
            found.append(Deviation(part, _difference(value, expected), rank=holder.ranks[0], alike=alike))
    for rank, digest in sorted(holder.digests.items()):
        if holder.world_size == capture.save.topology.world_size:
            found += _rank_deviations(rank, digest, capture, others)
        elif not capture.has_sampler(digest.sampler):
            found.append(_position(rank, digest, capture, others))
    return found


def _attributed(found: Sequence[Deviation], others: Sequence[Capture], said: Collection[int]) -> tuple[Deviation, ...]:
    """With the origins of counters and settings: they are so few and small that equal ones prove nothing by themselves.

    They are another capture's part where bytes or random streams, which can't be equal by chance, are of that capture as well,
    or where the state is said to be that capture.
    """
    known = {deviation.origin for deviation in found} | {str(other) for other in others if other.save.step in said}
    attributed = []
    for deviation in found:
        origin = next((name for name in deviation.alike if name in known), deviation.origin)
        detail = deviation.detail
        if deviation.alike and not origin:
            detail += f"; {deviation.alike[0]} has the same value"
        attributed.append(replace(deviation, origin=origin, detail=detail))
    return tuple(attributed)


def _position(rank: int, digest: StateDigest, capture: Capture, others: Sequence[Capture]) -> Deviation:
    """The data position is the same on all ranks, so that every rank of another world has to have it, new ones too."""
    alike = tuple(str(other) for other in others if other.has_sampler(digest.sampler))
    expected = next(iter(capture.save.digests.values())).sampler
    return Deviation("sampler", _difference(digest.sampler, expected), rank=rank, alike=alike)


def _rank_deviations(rank: int, digest: StateDigest, capture: Capture, others: Sequence[Capture]) -> list[Deviation]:
    found = []
    for part in ("rng", "sampler"):
        value, expected = rank_part(digest, part), capture.rank_part(rank, part)
        if value == expected:
            continue
        alike = tuple(str(other) for other in others if other.rank_part(rank, part) == value)
        twin = next((r for r in capture.save.digests if r != rank and capture.rank_part(r, part) == value), None)
        if expected is None:
            detail = "this rank had not started that save"
        elif twin is not None:
            detail = f"it equals that of rank {twin}"
        elif part == "rng":
            detail = "differing streams: " + ", ".join(
                sorted(name for name in expected if value.get(name) != expected[name])
            )
        else:
            detail = _difference(value, expected)
        if twin is not None:
            found.append(Deviation(part, detail, rank=rank))
        elif part == "rng":
            found.append(Deviation(part, detail, next(iter(alike), ""), rank=rank))
        else:
            found.append(Deviation(part, detail, rank=rank, alike=alike))
    return found


def _optimizer(holder: Holder, capture: Capture, others: Sequence[Capture]) -> list[Deviation]:
    held = {key: value for key, value in holder.holding.tensors.items() if key[0] == "optimizer"}
    expected = _names(capture, "optimizer")
    wrong = sorted(key for key in expected | held.keys() if not capture.has_tensor(key, held.get(key, DIFFERS)))
    if not wrong:
        return []
    detail = f"{len(wrong)} of {len(expected)} tensors differ ({_some([name for _, name in wrong])})"
    # A count of steps that equals another save's is no evidence of its bytes: a new optimizer counts, too.
    telling = [key for key in wrong if _moment(key) != "step"]
    for other in others:
        if any(other.has_tensor(key, held.get(key, DIFFERS)) for key in telling):
            return [Deviation("optimizer", detail, str(other), rank=holder.ranks[0])]
    alike = (
        ()
        if telling
        else tuple(
            str(other) for other in others if all(other.has_tensor(key, held.get(key, DIFFERS)) for key in wrong)
        )
    )
    moments = {_moment(key) for key in wrong}
    whole = all(key in wrong for key in expected if _moment(key) in moments)
    absent = all(key not in held for key in wrong)
    return [Deviation("optimizer", detail, torn=not (whole or absent), rank=holder.ranks[0], alike=alike)]


def _moment(key: Key) -> str:
    return key[1].rsplit("/", 1)[-1]


def _mixture(holder: Holder, params: Mapping[Key, str], captures: Sequence[Capture]) -> tuple[str, str]:
    """How the parameters fall apart into captures, in words, with a short word for it."""
    left = dict(params)
    groups: list[tuple[str, list[str]]] = []
    while left:
        best = max(captures, key=lambda c: (sum(c.has_tensor(k, v) for k, v in left.items()), c.save.key), default=None)
        names = [key for key, value in left.items() if best is not None and best.has_tensor(key, value)]
        if not names:
            break
        groups.append((f"of {best}", [name for _, name in names]))
        for key in names:
            del left[key]
    found = len(groups)
    if left:
        rows = _shard_origins(holder, captures)
        groups.append((rows or "not of any save", [name for _, name in left]))
        found += 2 if rows else 0
    missing = sorted({name for c in captures for _, name in _names(c, "params")} - {name for _, name in params})
    if missing:
        groups.append(("missing", missing))
    words = "; ".join(
        f"{len(names)} of {len(params)} tensors ({_some(names)}) are {origin}" for origin, names in groups
    )
    words += "".join(f"; {problem}" for problem in holder.problems[:2])
    return words, "mixed-generations" if found > 1 else "torn-bytes" if found == 1 else "unknown-state"


def _shard_origins(holder: Holder, captures: Sequence[Capture]) -> str:
    """Where each rank's own rows come from, when ranks of the same world captured them at different times."""
    if len(holder.ranks) == 1:
        return ""
    origins: dict[int, str] = {}
    for rank, digest in sorted(holder.digests.items()):
        for capture in reversed(captures):
            saved = capture.save.digests.get(rank)
            if saved is not None and saved.world_size == digest.world_size and _same_rows(saved, digest):
                origins[rank] = str(capture)
                break
    if len(set(origins.values())) < 2:
        return ""
    return "rows of different saves: " + ", ".join(
        f"those of rank {rank} are of {origin}" for rank, origin in origins.items()
    )


def _same_rows(saved: StateDigest, digest: StateDigest) -> bool:
    """Whether a rank holds the rows that it captured; one that holds no row at all has those of every save."""
    return saved.params == digest.params and any(tensor.rows for tensor in digest.params.values())


def _difference(seen: Mapping[str, str], expected: Mapping[str, str]) -> str:
    names = sorted(name for name in {*seen, *expected} if seen.get(name) != expected.get(name))
    first = names[0] if names else ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{first} is {seen.get(first, 'missing')}, but was {expected.get(first, 'missing')} when it was saved{more}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
