"""Names with a random part, found by comparing two runs of one command: as patterns that take that part out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_LETTERS = "[A-Za-z0-9_]"
_MOST_DIFFERING = 512
"""Of names that only one run has, so many are compared at most."""


def random_parts(one: Iterable[str], two: Iterable[str]) -> tuple[str, ...]:
    """Regular expressions for the part of a path (`tier:relative`) that is drawn anew in each run, the most general first.

    A name (one part of a path) of which each run has one of its own, alike but for some letters in one place, is taken for random
    there: a process number, or so many letters as a temporary name has. Names that both runs have are left as they are.
    """
    first, second = _names(one), _names(two)
    steady = [name for name in first if name in second]
    own, other = [n for n in first if n not in second], [n for n in second if n not in first]
    found: set[tuple[int, str]] = set()
    left = other[:_MOST_DIFFERING]
    for name in own[:_MOST_DIFFERING]:
        best = max(left, key=lambda candidate: _likeness(name, candidate), default=None)
        if best is None or not _comparable(name, best):
            continue
        left.remove(best)
        pattern = _pattern(name, best, steady)
        if pattern is not None:
            found.add(pattern)
    return tuple(pattern for _, pattern in sorted(found))


def _names(paths: Iterable[str]) -> list[str]:
    """Every part of every path, once, in order."""
    return list(dict.fromkeys(part for path in paths for part in path.partition(":")[2].split("/")))


def _likeness(name: str, other: str) -> tuple[bool, int]:
    start, end = _same(name, other)
    return _comparable(name, other), start + end


def _comparable(name: str, other: str) -> bool:
    """Whether they can be one name with two random parts: as long as each other, or alike but for digits."""
    return len(name) == len(other) or re.sub(r"\d+", "#", name) == re.sub(r"\d+", "#", other)


def _same(name: str, other: str) -> tuple[int, int]:
    """How many letters they have in common at the beginning, and how many of the rest at the end."""
    start = _common(name, other)
    return start, _common(name[start:][::-1], other[start:][::-1])


def _common(one: str, other: str) -> int:
    """How many letters both begin with."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _pattern(name: str, other: str, steady: Sequence[str]) -> tuple[int, str] | None:
    """(letters beside the random part, the expression); None where what differs can't be random letters.

    No name that is steady is matched by it.
    """
    start, end = _same(name, other)
    before, after = name[:start], name[len(name) - end :] if end else ""
    middles = (name[start : len(name) - end], other[start : len(other) - end])
    if all(re.fullmatch(r"\d*", middle) for middle in middles):
        before, after = before.rstrip("0123456789"), after.lstrip("0123456789")
        drawn = r"\d+"
    elif all(re.fullmatch(_LETTERS + "+", middle) for middle in middles):
        drawn = f"{_LETTERS}{{{len(middles[0])}}}"
    else:
        return None
    alike = re.compile(re.escape(before) + drawn + re.escape(after))
    kept = "|".join(re.escape(known[len(before) :]) for known in steady if alike.fullmatch(known))
    but = f"(?!(?:{kept})(?:/|$))" if kept else ""
    return len(before) + len(after), f"(?<=[:/]{re.escape(before)}){but}{drawn}(?={re.escape(after)}(?:/|$))"


def without_random(path: str, patterns: Iterable[re.Pattern[str]]) -> str:
    """The path with the parts that differ from run to run read as `*`."""
    for pattern in patterns:
        path = pattern.sub("*", path)
    return path
