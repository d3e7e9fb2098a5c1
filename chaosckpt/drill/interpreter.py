"""Another interpreter: whether it can run the ranks of a drill at all, tried before anything else is started."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from chaosckpt.drill.allocation import code_path
from chaosckpt.errors import UsageError

PATIENCE_SECONDS = 120
_TRY = (
    "import sys, torch.distributed, chaosckpt.engine.rank.training, chaosckpt.engine.forkserver.warm_up; "
    "from chaosckpt.plugins import load_target; "
    "load_target(sys.argv[1]); print('ready')"
)


def require_interpreter(python: str, target: str, environment: Mapping[str, str]) -> None:
    """Raise UsageError, one sentence with the path and the next step, where this is no interpreter that can run ranks of the target.

    It needs Python 3.11 or newer, torch, and what chaosckpt itself and the target import; chaosckpt's own code is lent to it.
    `environment` is what a fresh allocation is given.
    """
    if not os.path.isfile(python):
        raise UsageError(
            f"drill.restore_python = {python!r} is no file; name an interpreter, such as /opt/next/bin/python"
        )
    if not os.access(python, os.X_OK):
        raise UsageError(
            f"drill.restore_python = {python!r} can't be executed; name an interpreter that this user may run"
        )
    directory = Path(tempfile.mkdtemp(prefix="chaosckpt-interpreter-"))
    try:
        given = {
            **environment,
            "PYTHONPATH": code_path(directory, environment.get("PYTHONPATH")),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(directory),
        }
        done = subprocess.run(
            [python, "-P", "-c", _TRY, target],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            env=given,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"drill.restore_python = {python!r} did not import torch within {PATIENCE_SECONDS} seconds; try it by hand"
        ) from error
    except OSError as error:
        raise UsageError(
            f"drill.restore_python = {python!r} can't be started: {error.strerror}; name an interpreter of this machine"
        ) from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise UsageError(
            f"drill.restore_python = {python!r} can't run a rank: {lines[-1] if lines else f'it ended with {done.returncode}'}; "
            "install there what chaosckpt and your target need"
        )
    if done.stdout.strip() != "ready":
        raise UsageError(
            f"drill.restore_python = {python!r} did not import what a rank needs, though it ended well; name a Python interpreter"
        )
