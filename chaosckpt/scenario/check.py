"""What is refused in a scenario that is well formed: values that exclude one another, unknown names, unobservable commands."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

from chaosckpt import plugins
from chaosckpt.commands.naming import Naming
from chaosckpt.errors import UsageError
from chaosckpt.model.scenario import (
    OUT,
    RANKS,
    CommandSettings,
    RunSettings,
    Scenario,
    TargetSettings,
    TopologySettings,
    WorkloadSettings,
)
from chaosckpt.model.topology import check_ranks
from chaosckpt.plugins import is_target_file, nearest


def check(scenario: Scenario) -> None:
    """Raises UsageError, one sentence with the offending value and the next step."""
    check_topology(scenario.topology)
    check_subject(scenario)
    check_training(scenario)
    check_storage(scenario)
    check_faults(scenario)


def check_topology(settings: TopologySettings) -> None:
    """Refuse impossible topologies. Raises UsageError."""
    if not settings.ranks:
        raise UsageError("topology.ranks = [] names no topology; write at least one, such as [[1, 1]]")
    for ranks in settings.ranks:
        check_ranks("topology.ranks", ranks)
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


def check_subject(scenario: Scenario) -> None:
    """Refuse a scenario with no subject, with two, or with a command that can't be run and observed. Raises UsageError."""
    command = scenario.command
    if command is None:
        _check_target(scenario.target)
        return
    if scenario.target.use:
        raise UsageError(
            f"the scenario has target.use = {scenario.target.use!r} and a [command]; it tests one of them, so leave out the other"
        )
    check_command(command)
    _check_ranks(command, scenario.topology)
    _check_unheeded(scenario)


def _check_target(settings: TargetSettings) -> None:
    use, known = settings.use, plugins.names("targets")
    if not use:
        raise UsageError(
            "the scenario has neither a 'target' nor a 'command'; add a table: [target] with use = \"dcp\", or "
            '[command] with argv = ["python", "train.py", "--out", "{out}"]'
        )
    if not is_target_file(use) and use not in known:
        raise UsageError(
            f"target.use = {use!r} is not a target; {nearest(use, known)} (or name a file: my_target.py:MyTarget)"
        )
    if settings.options:
        _check_options(settings)


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


def _check_unheeded(scenario: Scenario) -> None:
    """Refuse settings of a target's job that a command would not heed."""
    why = "and this scenario has a [command]"
    if scenario.run.launch != RunSettings().launch:
        raise UsageError(
            f"run.launch = {scenario.run.launch!r} says how the ranks of a target are started, {why}; leave it out, and write "
            "cold = true below [command] to start a new interpreter for every attempt"
        )
    if scenario.run.gate == "none":
        raise UsageError(
            "run.gate = 'none' leaves nothing to see of an unmodified command, which is watched through the gate alone; "
            "leave it out, or test a [target]"
        )
    if scenario.run.fresh_start != RunSettings().fresh_start:
        raise UsageError(
            f"run.fresh_start = {scenario.run.fresh_start!r} says what the recovery of a target may do, {why}; leave it out: "
            "a command may always start afresh while no complete checkpoint is left"
        )
    usual = WorkloadSettings()
    for name in WorkloadSettings.__struct_fields__:
        if (value := getattr(scenario.workload, name)) != getattr(usual, name):
            raise UsageError(
                f"workload.{name} = {value!r} belongs to the training job that runs a target, {why}, which trains by itself; "
                "leave [workload] out, and set this in the command's own arguments"
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


def check_faults(scenario: Scenario) -> None:
    """Refuse fault kinds that nobody offers, and a mix of none. Raises UsageError."""
    known = plugins.names("faults")
    for kind in scenario.faults.kinds:
        if kind not in known:
            raise UsageError(f"faults.kinds.{kind} is not a kind of fault; {nearest(kind, known)}")
    if scenario.faults.kinds and not any(scenario.faults.kinds.values()):
        raise UsageError(
            "faults.kinds gives every kind the weight 0, so that no fault is left; raise a weight, or leave out the table to draw all"
        )


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


EXAMPLE = "python train.py --out {out}"


def check_command(command: CommandSettings) -> None:
    """Raises UsageError, one sentence with the offending value and the next step."""
    if not command.argv:
        raise UsageError(f"the command has no words; write it after --, or as command.argv, such as {EXAMPLE}")
    if not any(OUT in word for word in command.argv):
        raise UsageError(
            f"the command {shlex.join(command.argv)!r} has no {OUT}, which stands for the output directory that chaosckpt provides; "
            f"write {OUT} in place of that directory, such as {EXAMPLE}"
        )
    _check_program(command)
    if command.checkpoints is not None:
        try:
            Naming(command.checkpoints)
        except ValueError as error:
            raise UsageError(f"checkpoints (--checkpoints): {error}; write a glob such as {OUT}/ckpt-*") from error
    for option in ("resumed", "saved"):
        _check_pattern(option, getattr(command, option))
    _check_result(command)
    for directory in command.track:
        if not Path(command.directory, directory).is_dir():
            raise UsageError(f"track (--track) {directory!r} is not a directory; create it, or leave out the option")


def _check_program(command: CommandSettings) -> None:
    program = command.argv[0]
    if os.sep in program:
        path = Path(command.directory, program)
        if not path.is_file():
            raise UsageError(f"there is no file {program!r}; check the first word of the command")
        if not os.access(path, os.X_OK):
            raise UsageError(
                f"the file {program!r} can't be executed; make it executable, or put its interpreter first"
            )
    elif shutil.which(program) is None:
        raise UsageError(f"there is no command {program!r} on the PATH; check the spelling, or write its full path")


def _check_pattern(option: str, pattern: str | None) -> None:
    if pattern is None:
        return
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise UsageError(
            f"{option} (--{option}) {pattern!r} is not a valid regular expression: {error}; fix it"
        ) from error
    if groups != 1:
        count = "no group" if groups == 0 else f"{groups} groups"
        raise UsageError(
            f"{option} (--{option}) {pattern!r} has {count}; write exactly one, around the step number, as in 'step (\\d+)', and "
            "(?:...) for any other group"
        )


def _check_result(command: CommandSettings) -> None:
    if command.result is not None:
        if not command.result.startswith(OUT + "/") or command.result.endswith("/"):
            raise UsageError(
                f"result (--result) {command.result!r} must name a file below {OUT}, such as {OUT}/final.pt"
            )
        if command.result_command is not None:
            raise UsageError(
                f"result (--result) {command.result!r} and result_command (--result-cmd) {command.result_command!r}: "
                "a command has one result; leave out one of them"
            )
    if command.tolerance and command.result_command is None:
        raise UsageError(
            f"tolerance (--tolerance) {command.tolerance} needs result_command (--result-cmd), whose number it is for; add one"
        )
    if command.tolerance < 0:
        raise UsageError(f"tolerance (--tolerance) {command.tolerance} is negative; write 0 or more")
    if command.result_command is not None:
        try:
            words = shlex.split(command.result_command)
        except ValueError as error:
            raise UsageError(
                f"result_command (--result-cmd) {command.result_command!r} can't be split into arguments: {error}; check its quotes"
            ) from error
        if not words:
            raise UsageError(
                "result_command (--result-cmd) is empty; write a command that prints one number, or leave out the option"
            )
