"""What is refused in a scenario that is well formed: values that can't be together, and names that nobody offers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from chaosckpt import plugins
from chaosckpt.campaign.command_check import check_command
from chaosckpt.engine.node.launcher import SET_BY_HARNESS
from chaosckpt.errors import UsageError
from chaosckpt.model.command import RANKS, CommandSettings
from chaosckpt.model.scenario import Scenario, TargetSettings, TopologySettings
from chaosckpt.plugins import nearest

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MOST_RANKS = 1024
"""More processes than this, with their sockets to one another, are a slip of the pen."""


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
    """Refuse topologies that can't be. Raises UsageError."""
    if not settings.ranks:
        raise UsageError("topology.ranks = [] has no topology; write at least one, such as [[1, 1]]")
    for ranks in settings.ranks:
        _check_one_topology("topology.ranks", ranks)
    seen: set[int] = set()
    for group in settings.failure_groups:
        for node in group:
            if not 0 <= node < settings.nodes:
                raise UsageError(
                    f"topology.failure_groups has node {node}, but the largest topology has {settings.nodes} nodes, "
                    f"numbered from 0 to {settings.nodes - 1}"
                )
            if node in seen:
                raise UsageError(f"topology.failure_groups has node {node} twice; a node dies with one group")
            seen.add(node)


def _check_one_topology(key: str, ranks: Sequence[int]) -> None:
    if not ranks or min(ranks) < 1:
        raise UsageError(
            f"{key} has {list(ranks)}: a topology needs at least one node, and at least one rank on every node; "
            "write the ranks of each node, such as [1, 1]"
        )
    if sum(ranks) > MOST_RANKS:
        raise UsageError(
            f"{key} has {list(ranks)}: {sum(ranks)} ranks, each of them a process, are more than the {MOST_RANKS} that "
            "chaosckpt runs; a handful shows what more would"
        )


def check_subject(scenario: Scenario) -> None:
    """Refuse a scenario without a subject, with two, or with a command that can't be watched. Raises UsageError."""
    command = scenario.command
    if command is None:
        if not scenario.target.use:
            raise UsageError(
                "there is neither a 'target' nor a 'command'; write a table: [target] and below it use = \"dcp\", or "
                '[command] and below it argv = ["python", "train.py", "--out", "{out}"]'
            )
        return
    if scenario.target.use:
        raise UsageError(
            f"target.use = {scenario.target.use!r} and a [command]: a scenario tests one of them; leave out the other"
        )
    check_command(command)
    _check_ranks(command, scenario.topology)


def _check_ranks(command: CommandSettings, settings: TopologySettings) -> None:
    for ranks in settings.ranks:
        if len(ranks) != 1:
            raise UsageError(
                f"topology.ranks has {list(ranks)}: a command runs on one node; write its ranks as [[{sum(ranks)}]]"
            )
    if len(settings.ranks) > 1 and not any(RANKS in word for word in command.argv):
        raise UsageError(
            f"the number of ranks is to change, but the command has no {RANKS} in it that would tell it so; write {RANKS} "
            f"where the number belongs, such as --nproc-per-node {RANKS}"
        )


def check_training(scenario: Scenario) -> None:
    """Refuse a training job that would never save. Raises UsageError."""
    workload = scenario.workload
    if workload.save_every > workload.steps:
        raise UsageError(
            f"workload.save_every = {workload.save_every} is more than workload.steps = {workload.steps}, "
            "so that nothing would ever be saved; raise steps or lower save_every"
        )


def check_storage(scenario: Scenario) -> None:
    """Refuse storage roots that can't be. Raises UsageError."""
    for name in ("shared", "local"):
        directory = getattr(scenario.storage, name)
        if directory is not None and not Path(directory).is_absolute():
            raise UsageError(
                f"storage.{name} = {directory!r} is not an absolute path; every node must understand it alike"
            )
    shared = scenario.storage.shared
    if shared is not None and not Path(shared).is_dir():
        raise UsageError(
            f"storage.shared = {shared!r} is not a directory; create it, or leave the key out for a temporary one"
        )


def check_drill(scenario: Scenario) -> None:
    """Refuse a restart test that can't be. Raises UsageError."""
    drill, first = scenario.drill, scenario.topology.ranks[0]
    for ranks in drill.restore_ranks:
        _check_one_topology("drill.restore_ranks", ranks)
        if ranks == first:
            raise UsageError(
                f"drill.restore_ranks has {list(ranks)}, which is the topology that saves; a drill restores in that one anyway: name "
                "others, such as [[1]]"
            )
    if drill.restore_python and not Path(drill.restore_python).is_absolute():
        raise UsageError(
            f"drill.restore_python = {drill.restore_python!r} is not an absolute path; write the interpreter's, such as "
            "/opt/next/bin/python"
        )
    for name in drill.environment:
        if not _VARIABLE.fullmatch(name):
            raise UsageError(
                f"drill.environment has {name!r}, which is no name of an environment variable; its value is taken from the environment "
                "in which the drill is started"
            )
        if name in SET_BY_HARNESS:
            raise UsageError(
                f"drill.environment has {name!r}, which the harness sets for every rank by itself; leave it out"
            )


def check_plugins(scenario: Scenario) -> None:
    """Refuse targets, options and fault kinds that nobody offers. Raises UsageError."""
    known = plugins.names("faults")
    for kind in scenario.faults.kinds:
        if kind not in known:
            raise UsageError(f"faults.kinds.{kind} is no fault; {nearest(kind, known)}")
    if scenario.faults.kinds and not any(scenario.faults.kinds.values()):
        raise UsageError(
            "faults.kinds gives every kind the weight 0, so that no fault is left; leave the table out for all"
        )
    if scenario.command is not None:
        return
    use, known = scenario.target.use, plugins.names("targets")
    if not is_target_file(use) and use not in known:
        raise UsageError(
            f"target.use = {use!r} is no target; {nearest(use, known)} (or name a file: my_target.py:MyTarget)"
        )
    if scenario.target.options:
        _check_options(scenario.target)


def _check_options(settings: TargetSettings) -> None:
    """Compare the options with those that the target's class declares; only this needs the class, and with it torch."""
    declared = plugins.target(settings.use).options
    for name, value in settings.options.items():
        if name not in declared:
            raise UsageError(f"target.options.{name} is no option of {settings.use}; {nearest(name, declared)}")
        if type(value) is not type(declared[name]):
            raise UsageError(
                f"target.options.{name} = {value!r} must be of type {type(declared[name]).__name__}, as its default {declared[name]!r}"
            )
