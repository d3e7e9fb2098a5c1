"""Which kinds of fault a scenario can be given at all."""

from __future__ import annotations

from chaosckpt.model.fault import Fault
from chaosckpt.model.scenario import Scenario
from chaosckpt.plugins import fault_kinds

_NEEDS_NODES = frozenset({"node-loss", "local-storage-loss", "shared-storage-loss"})
_NEEDS_A_TARGET = frozenset({"bit-flip", "truncation", "mtimes", "stale-save"})
"""Kinds that change what lies on storage between two launches, by what a target's census says of it."""


def kinds_for(scenario: Scenario) -> dict[str, type[Fault]]:
    """Every installed kind, but for a command without those that need nodes with storage of their own, or a target."""
    found = fault_kinds()
    if scenario.command is None:
        return found
    return {name: kind for name, kind in found.items() if name not in _NEEDS_NODES | _NEEDS_A_TARGET}
