"""What is refused in a command: a program that can't be run, and markers that can't be read."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

from chaosckpt.errors import UsageError
from chaosckpt.model.checkpoints import Naming
from chaosckpt.model.command import OUT, CommandSettings

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
