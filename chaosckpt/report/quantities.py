"""Seconds, bytes and ratios as people read them: three digits, and the unit that fits."""

from __future__ import annotations

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
