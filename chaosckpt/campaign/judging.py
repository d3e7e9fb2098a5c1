"""Judging with every invariant that is installed, a plugin's included."""

from __future__ import annotations

from chaosckpt import oracle, plugins
from chaosckpt.errors import PluginError
from chaosckpt.model.journal import Journal
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.verdict import Verdict


def installed() -> tuple[oracle.Invariant, ...]:
    """Every registered invariant. Raises PluginError for an entry point that names something else."""
    found = plugins.invariants()
    for name, invariant in found.items():
        if not isinstance(invariant, oracle.Invariant):
            raise PluginError(
                f"invariant {name!r} is a {type(invariant).__name__}, no chaosckpt.oracle.Invariant; "
                "let its entry point name one, or uninstall it"
            )
    return tuple(found.values())


def check(scenario: Scenario, journal: Journal) -> Verdict:
    """The oracle's verdict of one trial."""
    return oracle.check(scenario, journal, installed())


def explain(scenario: Scenario, journal: Journal) -> str:
    """The oracle's reasoning about one trial, for a person."""
    return oracle.explain(scenario, journal, installed())
