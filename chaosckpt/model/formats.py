"""Formats of what is stored on disk, as numbers: a version of chaosckpt reads its own and refuses every other in a sentence.

Format 2 (chaosckpt 0.2) has other names for invariants, events and faults' evidence than format 1; CHANGELOG.md has the table.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")

RUN = 2
"""Run directories, their journals and findings, and cached censuses: they hold each other's values, so they change together."""


def refusal(what: str, found: int, known: int, next_step: str) -> str:
    """The sentence for a stored thing of another format than the one that this version reads."""
    author = "a newer version of chaosckpt wrote it" if found > known else "an older version of chaosckpt wrote it"
    return f"{what} has format {found}, and this version reads format {known}: {author}; {next_step}"


def read_json(content: bytes, kind: type[T]) -> T:
    """A stored value. Raises msgspec.DecodeError for everything that isn't one, however deep it is nested and whatever its bytes."""
    try:
        return msgspec.json.decode(content, type=kind)
    except RecursionError as error:
        raise msgspec.DecodeError("it is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"it is not UTF-8 text (byte {error.start})") from error
