"""Which error numbers which operations can give; no other is ever injected, because no file system would give it."""

from __future__ import annotations

import errno

_OPENS = frozenset({"open_write", "open_read"})
_BY_HANDLE = _OPENS | {"write", "fsync", "rename", "unlink", "read", "list", "stat"}

ERRORS: dict[str, frozenset[str]] = {
    "EIO": _BY_HANDLE | {"close", "ftruncate", "truncate", "mkdir"},
    "EEXIST": frozenset({"mkdir", "link", "symlink"}),
    "ESTALE": _BY_HANDLE,
    "EMFILE": _OPENS,
}
"""EIO: a medium or a server fails. EEXIST: another one made it just now. ESTALE: a network file system lost the handle.
EMFILE: the process has no descriptor left. Errors of full storage are a budget of their own (the kind `space`)."""


def number(error: str) -> int:
    """The error number by its name. Raises ValueError for one that isn't injected."""
    if error not in ERRORS:
        raise ValueError(f"error = {error!r} is none of {', '.join(sorted(ERRORS))}")
    return int(getattr(errno, error))
