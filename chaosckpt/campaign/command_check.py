"""What is refused in a command: one that can't be watched, and signs that can't be read."""

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
        raise UsageError(f"the command has no words; write it behind -- or as command.argv, such as {EXAMPLE}")
    if not any(OUT in word for word in command.argv):
        raise UsageError(
            f"the command {shlex.join(command.argv)!r} has no {OUT} in it: chaosckpt has to give it the directory that it writes to; "
            f"write {OUT} where that belongs, such as {EXAMPLE}"
        )
    _check_program(command)
    if command.checkpoints is not None:
        try:
            Naming(command.checkpoints)
        except ValueError as error:
            raise UsageError(f"checkpoints (--checkpoints): {error}; such as {OUT}/ckpt-*") from error
    for option in ("resumed", "saved"):
        _check_pattern(option, getattr(command, option))
    _check_result(command)
    for directory in command.track:
        if not Path(command.directory, directory).is_dir():
            raise UsageError(f"track (--track) {directory!r} is not a directory; create it, or leave it out")


def _check_program(command: CommandSettings) -> None:
    program = command.argv[0]
    if os.sep in program:
        path = Path(command.directory, program)
        if not path.is_file():
            raise UsageError(f"there is no file {program!r}: check the first word of the command")
        if not os.access(path, os.X_OK):
            raise UsageError(
                f"the file {program!r} can't be executed: make it executable, or put its interpreter first"
            )
    elif shutil.which(program) is None:
        raise UsageError(f"there is no command {program!r} on the PATH; check its first word, or write its whole path")


def _check_pattern(option: str, pattern: str | None) -> None:
    if pattern is None:
        return
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise UsageError(f"{option} (--{option}) {pattern!r} is no regular expression: {error}") from error
    if groups != 1:
        count = "no group" if groups == 0 else f"{groups} groups"
        raise UsageError(
            f"{option} (--{option}) {pattern!r} has {count}; exactly one must hold the step's number, as in 'step (\\d+)', and "
            "(?:...) groups without holding"
        )


def _check_result(command: CommandSettings) -> None:
    if command.result is not None:
        if not command.result.startswith(OUT + "/") or command.result.endswith("/"):
            raise UsageError(
                f"result (--result) {command.result!r} must name a file below {OUT}, such as {OUT}/final.pt"
            )
        if command.result_command is not None:
            raise UsageError(
                f"result (--result) {command.result!r} and result_command (--result-cmd) {command.result_command!r}: name one of them"
            )
    if command.tolerance and command.result_command is None:
        raise UsageError(
            f"tolerance (--tolerance) {command.tolerance} is for the number that a result_command prints, and there is no --result-cmd"
        )
    if command.tolerance < 0:
        raise UsageError(f"tolerance (--tolerance) {command.tolerance} must not be negative")
    if command.result_command is not None:
        try:
            words = shlex.split(command.result_command)
        except ValueError as error:
            raise UsageError(
                f"result_command (--result-cmd) {command.result_command!r} can't be split into words: {error}"
            ) from error
        if not words:
            raise UsageError(
                "result_command (--result-cmd) is empty; write a command that prints one number, or leave it out"
            )
