"""What is refused in a well-formed scenario: values that contradict one another, and names that nothing provides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from chaosckpt import plugins
from chaosckpt.campaign.command_check import check_command
from chaosckpt.engine.launcher import SET_BY_HARNESS
from chaosckpt.errors import UsageError
from chaosckpt.model.command import RANKS, CommandSettings
from chaosckpt.model.scenario import Scenario, TargetSettings, TopologySettings
from chaosckpt.plugins import nearest

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MOST_RANKS = 1024
"""More processes than this, each with sockets to the others, are a typing error."""


def is_target_file(spec: str) -> bool:
    """Whether this names a target by file and class, such as `my_target.py:MyTarget`."""
    return ".py:" in spec or spec.endswith(".py")


def check(scenario: Scenario) -> None:
    """Raises UsageError, one sentence with the offending value and the next step."""
    check_topology(scenario.topology)
    check_subject(scenario)
    check_training(scenario)
    check_storage(scenario)
    check_drill(scenario)
    check_plugins(scenario)


def check_topology(settings: TopologySettings) -> None:
    """Refuse impossible topologies. Raises UsageError."""
    if not settings.ranks:
        raise UsageError("topology.ranks = [] names no topology; write at least one, such as [[1, 1]]")
    for ranks in settings.ranks:
        _check_one_topology("topology.ranks", ranks)
    seen: set[int] = set()
    for group in settings.failure_groups:
        for node in group:
            if not 0 <= node < settings.nodes:
                raise UsageError(
                    f"topology.failure_groups names node {node}, but the largest topology has {settings.nodes} nodes; "
                    f"use numbers from 0 to {settings.nodes - 1}"
                )
            if node in seen:
                raise UsageError(f"topology.failure_groups names node {node} twice; a node belongs to one group")
            seen.add(node)


def _check_one_topology(key: str, ranks: Sequence[int]) -> None:
    if not ranks or min(ranks) < 1:
        raise UsageError(
            f"{key} has {list(ranks)}: a topology needs at least one node, and at least one rank on every node; "
            "write the number of ranks on each node, such as [1, 1]"
        )
    if sum(ranks) > MOST_RANKS:
        raise UsageError(
            f"{key} has {list(ranks)}: {sum(ranks)} ranks exceed the limit of {MOST_RANKS}; use a few ranks, each of which is a "
            "process"
        )


def check_subject(scenario: Scenario) -> None:
    """Refuse a scenario with no subject, with two, or with a command that can't be run and observed. Raises UsageError."""
    command = scenario.command
    if command is None:
        if not scenario.target.use:
            raise UsageError(
                "the scenario has neither a 'target' nor a 'command'; add a table: [target] with use = \"dcp\", or "
                '[command] with argv = ["python", "train.py", "--out", "{out}"]'
            )
        return
    if scenario.target.use:
        raise UsageError(
            f"the scenario has target.use = {scenario.target.use!r} and a [command]; it tests one of them, so leave out the other"
        )
    check_command(command)
    _check_ranks(command, scenario.topology)


def _check_ranks(command: CommandSettings, settings: TopologySettings) -> None:
    for ranks in settings.ranks:
        if len(ranks) != 1:
            raise UsageError(
                f"topology.ranks has {list(ranks)}, but a command runs on one node; write its ranks as [[{sum(ranks)}]]"
            )
    if len(settings.ranks) > 1 and not any(RANKS in word for word in command.argv):
        raise UsageError(
            f"topology.ranks changes the number of ranks, but the command contains no {RANKS}; write {RANKS} in place of the number, "
            f"as in --nproc-per-node {RANKS}"
        )


def check_training(scenario: Scenario) -> None:
    """Refuse a training job that would never save. Raises UsageError."""
    workload = scenario.workload
    if workload.save_every > workload.steps:
        raise UsageError(
            f"workload.save_every = {workload.save_every} exceeds workload.steps = {workload.steps}, so that nothing would be saved; "
            "raise steps or lower save_every"
        )


def check_storage(scenario: Scenario) -> None:
    """Refuse storage roots that can't be used. Raises UsageError."""
    for name in ("shared", "local"):
        directory = getattr(scenario.storage, name)
        if directory is not None and not Path(directory).is_absolute():
            raise UsageError(
                f"storage.{name} = {directory!r} is not an absolute path; write one, so that it means the same on every node"
            )
    shared = scenario.storage.shared
    if shared is not None and not Path(shared).is_dir():
        raise UsageError(
            f"storage.shared = {shared!r} is not a directory; create it, or leave out the key for a temporary one"
        )


def check_drill(scenario: Scenario) -> None:
    """Refuse an impossible restart test. Raises UsageError."""
    drill, first = scenario.drill, scenario.topology.ranks[0]
    for ranks in drill.restore_ranks:
        _check_one_topology("drill.restore_ranks", ranks)
        if ranks == first:
            raise UsageError(
                f"drill.restore_ranks has {list(ranks)}, the topology that saves, in which every drill restores; name others, such as "
                "[[1]]"
            )
    if drill.restore_python and not Path(drill.restore_python).is_absolute():
        raise UsageError(
            f"drill.restore_python = {drill.restore_python!r} is not an absolute path; write that of an interpreter, such as "
            "/opt/next/bin/python"
        )
    for name in drill.environment:
        if not _VARIABLE.fullmatch(name):
            raise UsageError(
                f"drill.environment has {name!r}, which is not the name of an environment variable; write the name alone, without a "
                "value: that comes from the environment of the drill"
            )
        if name in SET_BY_HARNESS:
            raise UsageError(f"drill.environment has {name!r}, which the harness sets for every rank; leave it out")


def check_plugins(scenario: Scenario) -> None:
    """Refuse targets, options and kinds of fault that nothing provides. Raises UsageError."""
    known = plugins.names("faults")
    for kind in scenario.faults.kinds:
        if kind not in known:
            raise UsageError(f"faults.kinds.{kind} is not a kind of fault; {nearest(kind, known)}")
    if scenario.faults.kinds and not any(scenario.faults.kinds.values()):
        raise UsageError(
            "faults.kinds gives every kind the weight 0, so that no fault is left; raise a weight, or leave out the table to draw all"
        )
    if scenario.command is not None:
        return
    use, known = scenario.target.use, plugins.names("targets")
    if not is_target_file(use) and use not in known:
        raise UsageError(
            f"target.use = {use!r} is not a target; {nearest(use, known)} (or name a file: my_target.py:MyTarget)"
        )
    if scenario.target.options:
        _check_options(scenario.target)


def _check_options(settings: TargetSettings) -> None:
    """Compare the options with those that the target's class declares. Only this needs the class, and with it torch."""
    declared = plugins.target(settings.use).options
    for name, value in settings.options.items():
        if name not in declared:
            raise UsageError(f"target.options.{name} is not an option of {settings.use}; {nearest(name, declared)}")
        if type(value) is not type(declared[name]):
            raise UsageError(
                f"target.options.{name} = {value!r} must be a {type(declared[name]).__name__}, like its default {declared[name]!r}"
            )
