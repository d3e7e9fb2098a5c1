"""Which scenario shows each canary's bug, and which invariant its own docstring says must catch it first."""

from __future__ import annotations

import re
from typing import Any

from chaosckpt.model.scenario import Scenario
from chaosckpt.plugins import load_target, names
from chaosckpt.targets import Target
from tests.engine.case import scenario_of

PREFIX = "canary-"
GROWING: dict[str, Any] = {"ranks": ((1, 1), (1, 1, 1))}
MORE: dict[str, dict[str, Any]] = {
    "canary-added-position-lost": GROWING,
    "canary-added-rng-copied": GROWING,
    "canary-added-rng-unset": GROWING,
    "canary-resized-position": GROWING,
    "canary-stale-shards": {
        "ranks": ((1, 1, 1), (1, 1)),
        "workload": {"steps": 2, "save_every": 2},  # Of several saves only the last one shows it without a third fault.
        "faults": {"kinds": {"cut": 1.0, "world-size": 2.0}},
    },
    "canary-trusting": {"faults": {"kinds": {"cut": 1.0, "bit-flip": 2.0}}},
    "canary-unawaited": {"workload": {"at_end": "close"}},
    "canary-unbounded": {"workload": {"outstanding": 2}},
    "canary-unreadable-deleted": {"faults": {"kinds": {"cut": 1.0, "errno": 4.0}}},
    "canary-youngest-kept": {"faults": {"kinds": {"cut": 1.0, "mtimes": 2.0}}},
}
"""What a canary's scenario has beside its target: a bug that shows in another world needs one, and so on.

Where one rare kind of fault must strike a certain place, it is drawn more often than among all kinds (an error in a
recovery comes about once in two hundred trials of those).
"""


def canaries() -> dict[str, str]:
    """Every registered canary, with the invariant that its own docstring names."""
    found = sorted(name for name in names("targets") if name.startswith(PREFIX))
    return {name: _declared(load_target(name)) for name in found}


def scenario(name: str) -> Scenario:
    """The scenario in which a canary is hunted."""
    return scenario_of(name, **MORE.get(name, {}))


def _declared(canary: type[Target]) -> str:
    found = re.search(r"Caught first by ([a-z-]+)", canary.__doc__ or "")
    if found is None:
        raise ValueError(f"the docstring of {canary.__name__} doesn't say which invariant catches it first")
    return found[1]
