"""Schedules: the ordered faults of every attempt of one trial, as frozen values that round-trip through JSON."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from typing import Any, Union

import msgspec

from chaosckpt.errors import UsageError
from chaosckpt.model.fault import Fault
from chaosckpt.model.topology import Topology


class AttemptPlan(msgspec.Struct, frozen=True):
    """The faults of one launch of the job, in the order in which they are armed."""

    faults: tuple[Fault, ...] = ()


class Schedule(msgspec.Struct, frozen=True):
    """The attempts of a trial that have faults. The engine adds a closing attempt without any: recovery must then succeed."""

    attempts: tuple[AttemptPlan, ...] = ()

    @property
    def faults(self) -> tuple[Fault, ...]:
        return tuple(fault for attempt in self.attempts for fault in attempt.faults)

    def topologies(self, first: Topology) -> tuple[Topology, ...]:
        """The topology of each attempt, the closing one included, when the first would start with `first`."""
        result, current = [], first
        for attempt in (*self.attempts, AttemptPlan()):
            for fault in attempt.faults:
                current = fault.topology(current)
            result.append(current)
        return tuple(result)

    @property
    def digest(self) -> str:
        """16 hexadecimal digits, equal for equal schedules, on every machine."""
        return hashlib.blake2b(encode(self), digest_size=8).hexdigest()


PLAIN_RESTART = Schedule((AttemptPlan(),))
"""The job runs to its end, and is launched once more; nothing is injected."""


def encode(schedule: Schedule) -> bytes:
    """JSON, the same bytes for equal schedules."""
    return msgspec.json.encode(schedule, order="deterministic")


def to_builtins(schedule: Schedule) -> Any:
    """Plain lists and dictionaries, for a journal line or a TOML file."""
    return msgspec.json.decode(encode(schedule))


@functools.lru_cache(maxsize=8)
def _decoder(kinds: tuple[type[Fault], ...]) -> tuple[Any, Any]:
    """Shapes of AttemptPlan and Schedule whose faults are a tagged union of `kinds`."""
    union = _fault_union(kinds)
    plan = msgspec.defstruct("AnyAttemptPlan", [("faults", tuple[union, ...], ())], frozen=True)  # type: ignore[valid-type]
    whole = msgspec.defstruct("AnySchedule", [("attempts", tuple[plan, ...], ())], frozen=True)  # type: ignore[valid-type]
    return plan, whole


def decode(raw: bytes | Any, kinds: Iterable[type[Fault]]) -> Schedule:
    """Read a schedule, given the fault kinds that the plugins offer. Raises UsageError for an unknown kind or field."""
    _, whole = _decoder(tuple(kinds))
    try:
        if isinstance(raw, bytes):
            found = msgspec.json.decode(raw, type=whole)
        else:
            found = msgspec.convert(raw, whole)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"this schedule can't be read: {error}; is the plugin installed that offers the fault?"
        ) from error
    return Schedule(tuple(AttemptPlan(plan.faults) for plan in found.attempts))


@functools.lru_cache(maxsize=8)
def _fault_union(kinds: tuple[type[Fault], ...]) -> Any:
    return Union[kinds] if kinds else Fault  # noqa: UP007 - built at run time from the plugins


def decode_faults(raw: Iterable[Any], kinds: Iterable[type[Fault]]) -> tuple[Fault, ...]:
    """Read faults from builtins. Raises UsageError for an unknown kind or field."""
    union = _fault_union(tuple(kinds))
    try:
        return tuple(msgspec.convert(one, union) for one in raw)
    except msgspec.ValidationError as error:
        raise UsageError(f"this fault can't be read: {error}; is the plugin installed that offers it?") from error
