"""Decisions: what a fault makes of one operation that is about to be performed."""

from __future__ import annotations

import msgspec

from chaosckpt.model.operation import When


class Hold(msgspec.Struct, frozen=True):
    """Leave the call unanswered: with nothing done, with the first `torn_bytes` bytes written, or with all of it done.

    The calling thread stays in the call until it is resumed or killed. Torn on anything but a write counts as before. With `again`,
    an operation held before it happens is decided once more when it is resumed.
    """

    when: When = "before"
    torn_bytes: int = 0
    again: bool = False


class Errno(msgspec.Struct, frozen=True):
    """Perform nothing and fail with this error number (a `close` still gives up the descriptor, as the kernel's does)."""

    number: int


class Short(msgspec.Struct, frozen=True):
    """Write the first `length` bytes only and say so; on anything but a write the operation is performed in full."""

    length: int


class Hide(msgspec.Struct, frozen=True):
    """List a directory without the entries of these names (nonces decoded); any other operation is performed untouched."""

    names: tuple[str, ...]


Decision = Hold | Errno | Short | Hide | None
"""None performs the operation untouched."""
