"""Quantities as people read and write them: `1.24 s`, `64 MB`, `24h`, `1,2,4`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from chaosckpt.errors import UsageError

_BYTES = (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_SHORT = ((1.0, "s", 1.0), (1e-3, "ms", 1e-3), (0.0, "µs", 1e-6))
"""From this on, this unit, of so many seconds."""


def digits(value: float) -> str:
    """Three significant digits, without an exponent for what people count."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-4:
        return f"{value:.3g}"
    if size >= 99.95:
        return f"{value:.0f}"
    text = f"{value:.3g}"
    return text if "e" not in text else f"{value:.0f}"


def seconds_text(seconds: float) -> str:
    """`850 µs`, `12.3 ms`, `45.6 s`, `12 min 30 s`, `3 h 20 min`, `2 d 4 h`."""
    if seconds < 0:
        return f"-{seconds_text(-seconds)}"
    if seconds == 0:
        return "0 s"
    if seconds < 59.95:
        unit, size = next((unit, size) for least, unit, size in _SHORT if seconds >= least * 0.9995)
        return f"{digits(seconds / size)} {unit}"
    for bound, coarse, fine, names in ((3600, 60, 1, "min s"), (172800, 3600, 60, "h min"), (1e9, 86400, 3600, "d h")):
        whole, rest = divmod(round(seconds / fine), coarse // fine)
        if whole * coarse < bound:
            first, second = names.split()
            return f"{whole} {first} {rest} {second}" if rest else f"{whole} {first}"
    return f"{digits(seconds / 86400)} d"


def bytes_text(count: float) -> str:
    """`512 B`, `1.5 MB`; powers of 1000, as disks are sold and as `ls -l --si` counts."""
    for unit, size in _BYTES:
        if abs(count) >= size * 0.9995:
            return f"{digits(count / size)} {unit}"
    return f"{digits(count)} B"


def ratio_text(ratio: float) -> str:
    """`×1.25`."""
    return f"×{digits(ratio)}"


def share_text(share: float) -> str:
    """`3.2 %`."""
    return f"{digits(100 * share)} %"


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
