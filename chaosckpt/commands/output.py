"""What a command says: the lines that report a step."""

from __future__ import annotations

import re

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
