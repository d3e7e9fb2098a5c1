"""Names with a random part, found by comparing two runs of one job: as patterns that take that part out.

What is drawn anew comes in many shapes: the letters of a temporary name, UUIDs, process numbers, times, hashes, base64. So two names
that only one run has each are compared token by token; where their tokens correspond, those that differ are random, and each is
read as whatever its shape allows. Where tokens don't correspond, as in base64 with hyphens of its own, what lies between the common
beginning and the common end is random, if it is as long in both.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_MOST_DIFFERING = 512
"""Of names that only one run has, so many are compared at most."""
_MOST_BY_CHANCE = 2
"""So many letters beside those that differ may be random, too, and equal by chance."""
_UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_CLOCK = r"[0-2]\d(?:[-:.]?[0-5]\d){1,2}(?:[.,_]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_DATE = rf"20\d\d-[01]\d-[0-3]\d(?:[T_ .-]{_CLOCK})?|20\d\d[01]\d[0-3]\d[T_-]{_CLOCK}"
_TIME = r"[0-2]\d[-:][0-5]\d[-:][0-5]\d"
_HOST = "[A-Za-z0-9][A-Za-z0-9.-]*"
_SHAPES = {"uuid": _UUID, "date": f"(?:{_DATE})", "time": _TIME, "host": _HOST, "digits": r"\d+"}
"""What is random in a token of such a kind, as an expression."""


class _Token(NamedTuple):
    kind: str
    text: str


class _Part(NamedTuple):
    """A piece of a name: steady `text`, or a random one that matches `drawn`."""

    text: str
    drawn: str = ""


def random_parts(one: Iterable[str], two: Iterable[str], host: str = "") -> tuple[str, ...]:
    """Regular expressions for the parts of a path (`tier:relative`) that are drawn anew in each run, in the order of their use.

    A name (one part of a path) of which each run has one of its own, alike but for what can be drawn, is random there. A date is
    taken for random in every name, since two runs may share it, and so is the name of this `host` beside another random part.
    Other names that both runs have are left as they are.
    """
    first, second = _names(one), _names(two)
    common = set(first) & set(second)
    steady = [name for name in first if name in common]
    own, other = [name for name in first if name not in common], [name for name in second if name not in common]
    found = {pattern for name in steady if (pattern := _of_dates(name, steady))}
    left = other[:_MOST_DIFFERING]
    for name in own[:_MOST_DIFFERING]:
        candidates = [(parts, rival) for rival in left if (parts := _parts(name, rival, host)) is not None]
        if candidates:
            parts, rival = max(candidates, key=lambda candidate: _steadiness(candidate[0]))
            left.remove(rival)
            found.add((_steadiness(parts), _patterns(parts, steady)))
    return tuple(dict.fromkeys(pattern for _, patterns in sorted(found) for pattern in patterns))


def _names(paths: Iterable[str]) -> list[str]:
    """Every part of every path, once, in order."""
    return list(dict.fromkeys(part for path in paths for part in path.partition(":")[2].split("/")))


def _steadiness(parts: Sequence[_Part]) -> int:
    """How many letters of a name are not random."""
    return sum(len(part.text) for part in parts if not part.drawn)


@functools.cache
def _tokenizer(host: str) -> re.Pattern[str]:
    known = f"(?P<host>{re.escape(host)})(?![A-Za-z0-9])|" if host else ""
    kinds = f"(?P<uuid>{_UUID})|(?P<date>{_DATE})|(?P<time>{_TIME})|(?P<digits>\\d+)"
    return re.compile(f"{known}(?:{kinds})(?![A-Za-z0-9])|(?P<word>[A-Za-z0-9]+)|(?P<other>.)", re.DOTALL)


@functools.lru_cache(maxsize=4 * _MOST_DIFFERING)
def _tokens(name: str, host: str) -> tuple[_Token, ...]:
    return tuple(_Token(match.lastgroup or "other", match.group()) for match in _tokenizer(host).finditer(name))


def _parts(name: str, other: str, host: str) -> tuple[_Part, ...] | None:
    """The name with what can't be told from the other one by anything but chance as random parts; None where they aren't alike."""
    tokens, others = _tokens(name, host), _tokens(other, host)
    if len(tokens) == len(others):
        found = [_corresponding(token, rival) for token, rival in zip(tokens, others, strict=True)]
        if all(found):
            return tuple(part for parts in found if parts for part in parts)
    return _between(name, other)


def _corresponding(token: _Token, other: _Token) -> tuple[_Part, ...] | None:
    """A token of a name beside the one that stands in its place in the other; None where the two can't be one thing drawn twice."""
    if token.kind in ("date", "host") and token.kind == other.kind:
        return (_Part(token.text, _SHAPES[token.kind]),)
    if token == other:
        return (_Part(token.text),)
    if token.kind == other.kind and token.kind in _SHAPES:
        return (_Part(token.text, _SHAPES[token.kind]),)
    if {token.kind, other.kind} <= {"word", "digits"}:
        return _in_word(token.text, other.text)
    return None


def _in_word(word: str, other: str) -> tuple[_Part, ...] | None:
    start, end = _same(word, other)
    middles = (word[start : len(word) - end], other[start : len(other) - end])
    if all(re.fullmatch(r"\d*", middle) for middle in middles):
        before, after = word[:start].rstrip("0123456789"), word[len(word) - end :].lstrip("0123456789")
        return _split(word, len(before), len(word) - len(after), r"\d+")
    if len(word) == len(other):
        return _letters(word, other, start, end)
    if all(re.fullmatch(r"(?=.*\d)[0-9a-f]{4,}", each) for each in (word, other)):
        return (_Part(word, "[0-9a-f]+"),)
    return None


def _between(name: str, other: str) -> tuple[_Part, ...] | None:
    """What lies between the common beginning and the common end, where it is as long in both and of letters that are drawn."""
    start, end = _same(name, other)
    middles = (name[start : len(name) - end], other[start : len(other) - end])
    if len(name) != len(other) or not all(re.fullmatch("[A-Za-z0-9_-]+", middle) for middle in middles):
        return None
    return _letters(name, other, start, end)


def _letters(name: str, other: str, start: int, end: int) -> tuple[_Part, ...]:
    """Random letters between `start` and `end`, and as many beside them as may be equal by chance."""
    first, last = start, len(name) - end
    while first > max(0, start - _MOST_BY_CHANCE) and name[first - 1].isalnum() and not name[:first].endswith("tmp"):
        first -= 1
    while last < min(len(name), len(name) - end + _MOST_BY_CHANCE) and name[last].isalnum():
        last += 1
    both = name[first:last] + other[first:last]
    hyphens = "-" if "-" in both or (both.lower() != both and both.upper() != both) else ""
    return _split(name, first, last, f"[A-Za-z0-9_{hyphens}]{{{last - first}}}")


def _split(name: str, first: int, last: int, drawn: str) -> tuple[_Part, ...]:
    parts = (_Part(name[:first]), _Part(name[first:last], drawn), _Part(name[last:]))
    return tuple(part for part in parts if part.text or part.drawn)


def _same(name: str, other: str) -> tuple[int, int]:
    """How many letters they have in common at the beginning, and how many of the rest at the end."""
    start = _common(name, other)
    return start, _common(name[start:][::-1], other[start:][::-1])


def _common(one: str, other: str) -> int:
    """How many letters both begin with."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _of_dates(name: str, steady: Sequence[str]) -> tuple[int, tuple[str, ...]] | None:
    """The patterns of a name that both runs have, for the dates in it; None without any, or where they tell it from another name."""
    parts = tuple(_Part(token.text, _SHAPES["date"] if token.kind == "date" else "") for token in _tokens(name, ""))
    alike = re.compile("".join(map(_expression, parts)))
    if not any(part.drawn for part in parts) or any(known != name and alike.fullmatch(known) for known in steady):
        return None
    return _steadiness(parts), _patterns(parts, ())


def _expression(part: _Part) -> str:
    return part.drawn or re.escape(part.text)


def _patterns(parts: Sequence[_Part], steady: Sequence[str]) -> tuple[str, ...]:
    """For each random part an expression that finds it, when those before it already read `*`. No steady name is matched."""
    found: list[str] = []
    before = ""
    alike = re.compile("".join(map(_expression, parts)))
    for place, part in enumerate(parts):
        if not part.drawn:
            before += part.text
            continue
        known = [] if found else [name[len(before) :] for name in steady if alike.fullmatch(name)]
        but = f"(?!(?:{'|'.join(map(re.escape, known))})(?:/|$))" if known else ""
        after = "".join(map(_expression, parts[place + 1 :]))
        found.append(f"(?<=[:/]{re.escape(before)}){but}{part.drawn}(?={after}(?:/|$))")
        before += "*"
    return tuple(found)


def without_random(path: str, patterns: Iterable[re.Pattern[str]]) -> str:
    """The path with the parts that differ from run to run read as `*`."""
    for pattern in patterns:
        path = pattern.sub("*", path)
    return path
