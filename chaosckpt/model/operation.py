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
MARK = "mark"
"""The operation of a stage boundary: where faults strike when there is no gate (chaosckpt/engine/node/phase.py)."""
STEP = "step"
"""What the training thread is about to do when it is held before a training step; its path is `step:5`. No storage call."""
NAMES = WRITING | READING | {MARK, STEP}
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


def tier_of(path: str) -> str:
    """The storage tier of a path as the census has it, `tier:relative`."""
    return path.partition(":")[0]


def step_address(rank: int, step: int) -> Address:
    """The coordinate of a rank's training thread: about to train this step."""
    return Address(rank, "main", STEP, f"step:{step}", 0, 0)


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One operation as the gate saw it, performed or about to be.

    `raw` is `tier:relative` with nonces as they were (the root itself is `tier:.`); `destination` the second path of a rename or
    link, in the same form. A path outside the tracked roots is absolute: the `raw` of what was moved in (its address then names the
    destination), the `destination` of what was moved out. For a symlink, `destination` is the text it holds.

    `handle` numbers the open files of a rank from 1, so that (rank, handle) is one open file whatever its names; 0 is a call by path.
    `offset` and `length` are bytes (of a truncation, `length` is the new size). `flags` are those of the open, rename or fallocate; of
    fsync, 1 means data only. `mode` is what a creation or chmod asked for, after the umask. `result` is the system call's return
    value (0 for an open, whose number is the gate's own), or -errno; None while it has not been performed. `data` holds the
    bytes written, when the trace keeps data; of a rename or link from outside, the content of the file moved in. A large write is
    observed in parts with one address: `part` counts them from 0.
    """

    address: Address
    sequence: int
    raw: str
    handle: int = 0
    part: int = 0
    destination: str | None = None
    offset: int | None = None
    length: int | None = None
    flags: int = 0
    mode: int = 0
    result: int | None = None
    data: bytes | None = None
