"""What a command says: the lines that report a step, and the events that its script sends through chaosckpt.probe."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from chaosckpt.model import journal as j

_LONGEST_NUMBER = 18
"""Digits of a step; what is longer is something else, and may be more than an integer can hold."""


def matches(output: str, pattern: str | None) -> list[tuple[int | None, str]]:
    """(number in the first group, line) of every line of the output that matches."""
    if pattern is None:
        return []
    found = []
    for line in output.splitlines():
        match = re.search(pattern, line)
        if match is not None:
            group = match.group(1) if match.re.groups else ""
            number = group is not None and len(group) <= _LONGEST_NUMBER and group.isdecimal()
            found.append((int(group) if number else None, line[:300]))
    return found


class _Told(msgspec.Struct, frozen=True):
    what: str
    rank: int
    step: int
    digest: str = ""
    samples: tuple[int, ...] = ()


def told(lines: Iterable[str], attempt: int) -> list[j.Probed]:
    """The events of one attempt; a line that was cut short by a kill is left out."""
    found = []
    for line in lines:
        try:
            event = msgspec.json.decode(line.encode(), type=_Told)
        except msgspec.MsgspecError:
            continue
        if event.what in ("saved", "resumed", "trained"):
            found.append(
                j.Probed(
                    attempt=attempt,
                    rank=event.rank,
                    what=event.what,  # type: ignore[arg-type]
                    step=event.step,
                    digest=event.digest,
                    samples=event.samples,
                )
            )
    return found


def samples_by_step(events: Iterable[j.Probed]) -> dict[int, tuple[int, ...]]:
    """The samples of each step, sorted, of all ranks."""
    found: dict[int, list[int]] = {}
    for event in events:
        if event.what == "trained":
            found.setdefault(event.step, []).extend(event.samples)
    return {step: tuple(sorted(samples)) for step, samples in sorted(found.items())}
