"""Logical addresses: counts per role, operation, path and incarnation, for one rank.

Pure: no process, no disk. Paths are `tier:relative` text.
"""

from __future__ import annotations

from collections.abc import Callable

from chaosckpt.model.operation import Address, Role


class Addresses:
    """Hands out each address once. `decode` maps a path with nonces to the path that faults name."""

    def __init__(self, rank: int, decode: Callable[[str], str]) -> None:
        self._rank = rank
        self._decode = decode
        self._incarnations: dict[str, int] = {}
        self._counts: dict[tuple[Role, str, str, int], int] = {}

    def decoded(self, raw: str) -> str:
        """The path as addresses name it."""
        return self._decode(raw)

    def incarnation(self, raw: str) -> int:
        return self._incarnations.get(self._decode(raw), 0)

    def begin(self, raw: str) -> int:
        """The path is about to be opened with O_CREAT or O_TRUNC."""
        path = self._decode(raw)
        self._incarnations[path] = number = self._incarnations.get(path, 0) + 1
        return number

    def take(self, role: Role, op: str, raw: str, incarnation: int | None = None) -> Address:
        """The next address; `incarnation` is the open file's own, for calls by descriptor."""
        path = self._decode(raw)
        if incarnation is None:
            incarnation = self._incarnations.get(path, 0)
        key = (role, op, path, incarnation)
        nth = self._counts[key] = self._counts.get(key, -1) + 1
        return Address(self._rank, role, op, path, incarnation, nth)

    def moved(self, old: str, new: str, *, exchanged: bool) -> None:
        """A rename takes the incarnation along; a path never goes back to an earlier one."""
        one, other = self._decode(old), self._decode(new)
        arrivals = self._under(one, other)
        if exchanged:
            arrivals |= self._under(other, one)
        for path, number in arrivals.items():
            self._incarnations[path] = max(number, self._incarnations.get(path, 0))

    def _under(self, old: str, new: str) -> dict[str, int]:
        return {
            new + path[len(old) :]: number
            for path, number in self._incarnations.items()
            if path == old or path.startswith(old + "/")
        }
