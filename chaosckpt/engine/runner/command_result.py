"""A command's result: a file's content, or the number that another command prints about it."""

from __future__ import annotations

import math
import shlex
import subprocess

from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.command_arena import environment, files_in_out, out_of
from chaosckpt.model.scenario import OUT, CommandSettings

_LONGEST_SECONDS = 600


def result_of(arena: Arena, command: CommandSettings) -> str | None:
    """The digest of the result file, or what the result command prints; None where there is none, or it fails."""
    if command.result is not None:
        name = command.result.replace(OUT + "/", "out:", 1)
        return next((digest for path, _, digest in files_in_out(arena) if path == name), None)
    if command.result_command is None:
        return None
    words = shlex.split(command.result_command.replace(OUT, shlex.quote(out_of(arena))))
    try:
        done = subprocess.run(
            words,
            cwd=command.directory,
            env=environment(arena.directory),
            capture_output=True,
            timeout=_LONGEST_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stdout.decode(errors="replace").strip()
    return said if done.returncode == 0 and said else None


def same_result(expected: str, seen_now: str, command: CommandSettings) -> bool:
    """Whether two results are equal; numbers of a result command within the tolerance."""
    if command.result_command is None or expected == seen_now:
        return expected == seen_now
    try:
        return math.isclose(float(expected), float(seen_now), rel_tol=0.0, abs_tol=command.tolerance)
    except ValueError:
        return False
