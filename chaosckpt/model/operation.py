"""Operations: storage system calls on tracked paths, and the addresses by which faults name them."""

from __future__ import annotations

from typing import Literal

import msgspec

When = Literal["before", "after", "torn"]
Role = Literal["main", "thread", "child"]

WRITING = frozenset(
    "open_write write fsync close ftruncate truncate fallocate rename link symlink unlink mkdir rmdir chmod sync".split()
)
READING = frozenset("open_read read list stat access readlink".split())
NAMES = WRITING | READING
"""Every operation name. `open_write` creates, truncates or opens for writing; `list` reads a directory's entries."""


class Address(msgspec.Struct, frozen=True, order=True):
    """Where an operation stands, by logic instead of by time or by a global count.

    Within one attempt, `nth` counts the operations `op` by `rank` in `role` on one incarnation of one path, from 0. `path` is
    `tier:relative/path` with declared nonces decoded (a temporary name's random part reads `*`); an *incarnation* begins
    each time this rank opens that path with O_CREAT or O_TRUNC (the first is 1; 0 means "not opened so by this rank").
    """

    rank: int
    role: Role
    op: str
    path: str
    incarnation: int
    nth: int

    def __str__(self) -> str:
        return f"rank {self.rank} {self.op} #{self.nth} on {self.path} (incarnation {self.incarnation}, {self.role})"


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One operation as the gate saw it, performed or about to be.

    `raw` is the tier-relative path with nonces as they were; `destination` the second path of a rename or link (likewise
    `tier:relative`, or an absolute path outside the tracked roots). `offset` and `length` are bytes. `result` is the system call's
    return value, or -errno; None while it has not been performed. `data` holds the bytes written, when the trace keeps data.
    """

    address: Address
    sequence: int
    raw: str
    destination: str | None = None
    offset: int | None = None
    length: int | None = None
    flags: int = 0
    mode: int = 0
    result: int | None = None
    data: bytes | None = None
