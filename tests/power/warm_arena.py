"""One warm arena for many targets: they differ in a few lines, not in what their ranks import."""

from __future__ import annotations

from chaosckpt.engine.forkserver.warm_up import target_facts
from chaosckpt.engine.runner.arena import Arena, node_settings, open_local
from chaosckpt.model.scenario import Scenario
from tests.engine.case import scenario_of

NODES = 3
"""As many as the largest topology of any canary has."""


def warm(name: str = "torch-save-atomic") -> Arena:
    """An arena for any target. It has seen the correct one from which most canaries are derived."""
    return open_local(scenario_of("torch-save-atomic", ranks=((1,) * NODES,)))


def use(arena: Arena, scenario: Scenario) -> None:
    """From now on the arena runs this scenario's target and workload, and tells what that target claims."""
    node = arena.nodes[0]
    settings = node_settings(scenario, arena.directory, gate=True)
    node.use(settings)
    node.facts = target_facts(settings)
    node.decode(node.facts.nonces)
