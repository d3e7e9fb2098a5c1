"""Decisions: what the gate does with one operation other than letting it pass."""

from __future__ import annotations

import msgspec

from chaosckpt.model.operation import When


class Hold(msgspec.Struct, frozen=True):
    """Leave the call unanswered: before it, after it, or with the first `torn_bytes` of its data written."""

    when: When = "before"
    torn_bytes: int = 0


class Errno(msgspec.Struct, frozen=True):
    """Fail the call with this error number; nothing is performed."""

    number: int


class Short(msgspec.Struct, frozen=True):
    """Perform only the first `length` bytes of a write and say so to the caller."""

    length: int


Decision = Hold | Errno | Short | None
