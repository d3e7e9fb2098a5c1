"""What a fork server tells its node, and a node its runner first of all: frozen values, sent as MessagePack."""

from __future__ import annotations

import msgspec

from chaosckpt.engine.wire.orders import TargetFacts


class Ready(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """The fork server is warm. `threads` must be 1, else ranks have to be started by exec; `modules` are for the next one to import."""

    facts: TargetFacts
    modules: tuple[str, ...]
    threads: int


class Refused(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """The fork server can't work with these settings. `usage` tells a mistake of the user from trouble of the harness."""

    why: str
    usage: bool


class Forked(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """A rank was forked: the answer to a one-byte request that carried the rank's channel and its log."""

    pid: int


class Reaped(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """A rank ended, with this wait status."""

    pid: int
    status: int


ForkServerMessage = Ready | Refused | Forked | Reaped
"""What a fork server tells its node."""
