"""Sizes, durations and counts as people write them on a command line: `64MB`, `24h`, `1,2,4`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from chaosckpt.errors import UsageError

_SIZES = {
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "PB": 1000**5,
    "KIB": 1024,
    "MIB": 1024**2,
    "GIB": 1024**3,
    "TIB": 1024**4,
    "PIB": 1024**5,
}
_DURATIONS = {"ms": 0.001, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DIGITS = 9
"""Of a whole number: beyond that it is a slip of the hand, and Python refuses to read one of some thousand digits."""
MOST_FAILURES = 1_000_000
"""That were counted: the exact bounds of more take long, and differ from the mean by less than anyone can use."""
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def size_bytes(text: str, option: str) -> int:
    """`64MB` in bytes. Raises UsageError, with the value and the units that there are."""
    found = _parsed(text, {name.upper(): factor for name, factor in _SIZES.items()}, fold=True)
    if found is None or not 0.5 < found < math.inf:
        raise UsageError(f"{option} {text!r} is no size; write a number with a unit, such as 500KB, 64MB or 1.5GiB")
    return round(found)


def seconds(text: str, option: str) -> float:
    """`24h` in seconds. Raises UsageError, with the value and the units that there are."""
    found = _parsed(text, _DURATIONS)
    if found is None or not 0 < found < math.inf:
        raise UsageError(
            f"{option} {text!r} is no duration; write a number with ms, s, min, h or d, such as 24h or 90min"
        )
    return found


def sizes(text: str, option: str) -> tuple[int, ...]:
    """`1MB,64MB` in bytes, each once, ascending. Raises UsageError."""
    return tuple(sorted({size_bytes(part, option) for part in text.split(",")}))


def counts(text: str, option: str) -> tuple[int, ...]:
    """`1,2,4` as numbers, each once, ascending. Raises UsageError."""
    parts = [part.strip() for part in text.split(",")]
    if not all(_whole(part) and int(part) > 0 for part in parts):
        raise UsageError(f"{option} {text!r} must be whole numbers from 1 on with commas between them, such as 1,2,4")
    return tuple(sorted({int(part) for part in parts}))


def failures(text: str, option: str) -> tuple[int, float]:
    """`7/30d`: so many failures in so many seconds. Raises UsageError."""
    number, slash, time = text.partition("/")
    if not slash or not (number.strip().isdecimal() and number.isascii()):
        raise UsageError(
            f"{option} {text!r} must be a number of failures and the time they were counted in, such as 7/30d"
        )
    if not _whole(number.strip()) or int(number) > MOST_FAILURES:
        raise UsageError(
            f"{option} {text!r} has more than {MOST_FAILURES} failures, which tell their mean by themselves; name it by --mtbf"
        )
    return int(number), seconds(time, option)


def _whole(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) <= _DIGITS


def _parsed(text: str, units: Mapping[str, float], fold: bool = False) -> float | None:
    match = _QUANTITY.fullmatch(text)
    unit = match[2].upper() if match and fold else match[2] if match else ""
    return None if match is None or unit not in units else float(match[1]) * units[unit]
