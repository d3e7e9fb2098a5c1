"""Findings: violations grouped by root cause, with the schedule shrunk to its essence."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from chaosckpt.model.verdict import Violation


class RootCause(msgspec.Struct, frozen=True, order=True):
    """What makes two violations one finding: the invariant, and where and how the guilty fault struck."""

    invariant: str
    stage: str = ""
    operation: str = ""
    file_pattern: str = ""
    error_type: str = ""

    def __str__(self) -> str:
        where = " ".join(part for part in (self.stage, self.operation, self.file_pattern) if part)
        return " / ".join(part for part in (self.invariant, where, self.error_type) if part)


def file_pattern(path: str) -> str:
    """The kind of file that a path names: every run of digits reads `#`."""
    return re.sub(r"\d+", "#", path)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One root cause met in a campaign. `reproduced` of `replays` replays of the shrunk schedule showed it again."""

    id: str
    cause: RootCause
    violation: Violation
    trial: str
    """The first trial that showed it, `SEED:INDEX`."""
    count: int
    schedule: dict[str, object]
    shrunk: dict[str, object]
    faults: tuple[str, ...]
    """The shrunk faults in words."""
    addresses: tuple[tuple[str, ...], ...] = ()
    """The exact addresses of the operations that each of them strikes."""
    reproduced: int
    replays: int
    shrink_trials: int = 0
    confirmed_cold: bool | None = None
    """Whether it showed, too, when the user's own launcher started the ranks; None where that was not tried, or nothing came of it."""
    interrupted: bool = False
    """The campaign was stopped before this was shrunk and replayed to the end; `fuzz --resume` does it anew."""


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the storage that a recovery found: `path` is relative to `storage/` in the finding's folder, as in
    `shared/latest/.metadata`, with the tier (and the node of a node-local one) first.

    `link` is where a symbolic link leads; `writer` says in words which save wrote a file last, where that is known.
    """

    path: str
    kind: Literal["file", "directory", "link"] = "file"
    bytes: int = 0
    modified_ns: int = 0
    link: str = ""
    writer: str = ""

    @property
    def place(self) -> str:
        """The tier's own folder."""
        return self.path.partition("/")[0]


class StoredStorage(msgspec.Struct, frozen=True, kw_only=True):
    """What lay on storage when the recovery began that the violation is about. `missing` says why there is no copy of it, or nothing.

    `roots` tells where each tier's folder was, `mentions` the text files in which such a path stands.
    """

    files: tuple[StoredFile, ...] = ()
    missing: str = ""
    roots: dict[str, str] = {}
    mentions: tuple[str, ...] = ()


class Excerpt(msgspec.Struct, frozen=True):
    """Some lines of the code under test, with what they are."""

    title: str
    text: str
    language: str = "python"


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What a finding's pages tell beside the finding itself, collected when it is stored.

    `story` has one line for each step of what happened, `traceback` the end of what the failing process printed, `versions` the lines
    that `torch.utils.collect_env` would print first. `no_script` says why there is no reproduce.py, or nothing.
    """

    story: tuple[str, ...] = ()
    code: tuple[Excerpt, ...] = ()
    storage: StoredStorage = StoredStorage(missing="no replay showed the violation again")
    traceback: str = ""
    versions: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    """The local modules that the code under test imports, by name."""
    no_script: str = ""
    claim: str = ""
    """What reproduce.py checks, in one sentence."""
