"""What lies on storage after a run: which files, how large, and which of them no golden run leaves."""

from __future__ import annotations

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.model import journal as j
from chaosckpt.model.census import Census


def inventory(arena: Arena) -> tuple[tuple[str, int], ...]:
    """(`tier:path` with nonces decoded, bytes) of every file on the arena's storage, sorted; a file twice where two are."""
    found: list[tuple[str, int]] = []
    for number, node in enumerate(arena.nodes):
        tiers = arena.tiers(number)
        names = (*arena.node_tiers, *arena.shared_tiers) if number == 0 else arena.node_tiers
        found += node.inventory({name: tiers[name] for name in names})
    return tuple(sorted(found))


def storage_left(arena: Arena, census: Census, attempt: int) -> j.StorageLeft:
    """What lies on storage now, beside what the golden runs of `census` leave there."""
    found = inventory(arena)
    known = frozenset(census.left)
    return j.StorageLeft(
        attempt=attempt,
        files=len(found),
        bytes=sum(size for _, size in found),
        abandoned=tuple((path, size) for path, size in found if path not in known),
        bound_bytes=arena.nodes[0].facts.abandoned * census.save_bytes,
    )
