"""Judging with every invariant that is installed, a plugin's included."""

from __future__ import annotations

from chaosckpt import oracle, plugins
from chaosckpt.model.journal import Journal
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.verdict import Verdict
from chaosckpt.oracle.commands.judgement import check_command, explain_command


def check(scenario: Scenario, journal: Journal) -> Verdict:
    """The oracle's verdict of one trial."""
    if scenario.command is not None:
        return check_command(scenario, journal)
    return oracle.check(scenario, journal, tuple(plugins.invariants().values()))


def explain(scenario: Scenario, journal: Journal) -> str:
    """The oracle's reasoning about one trial, for a person."""
    if scenario.command is not None:
        return explain_command(scenario, journal)
    return oracle.explain(scenario, journal, tuple(plugins.invariants().values()))
