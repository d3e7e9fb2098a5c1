"""Mutations at rest: what a fault does to files that lie on storage while no rank runs, as values for a node to carry out."""

from __future__ import annotations

from typing import ClassVar

import msgspec


class FlipBit(msgspec.Struct, frozen=True, tag_field="mutation", tag="flip-bit"):
    """Turn over one bit of the file `path` (as census paths are written): `bit` 0 to 7 of byte `offset`, modulo its size."""

    damages: ClassVar[bool] = True

    path: str
    offset: int
    bit: int


class CutOff(msgspec.Struct, frozen=True, tag_field="mutation", tag="cut-off"):
    """Take the last `missing_bytes` bytes off the file `path`; all of it where it has no more."""

    damages: ClassVar[bool] = True

    path: str
    missing_bytes: int


class ReverseTimes(msgspec.Struct, frozen=True, tag_field="mutation", tag="reverse-times"):
    """Set the modification times of everything on the tier in the reverse of their order."""

    damages: ClassVar[bool] = False


class Plant(msgspec.Struct, frozen=True, tag_field="mutation", tag="plant"):
    """Make these directories, and then these files, empty; what is there already is left alone."""

    damages: ClassVar[bool] = False

    directories: tuple[str, ...]
    files: tuple[str, ...] = ()


Mutation = FlipBit | CutOff | ReverseTimes | Plant


class Mutated(msgspec.Struct, frozen=True):
    """One thing that was changed: where (`tier:relative`), and what was done to it in words."""

    path: str
    what: str
