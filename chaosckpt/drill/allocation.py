"""Allocations of a drill: nodes with their own processes, node-local storage and temporary directory, around one shared storage."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import msgspec

import chaosckpt
from chaosckpt.engine.runner.arena import Arena, new_directory, node_settings
from chaosckpt.engine.runner.node_client import LocalNode
from chaosckpt.engine.wire import storage
from chaosckpt.errors import UsageError
from chaosckpt.model.scenario import Scenario


class Allocation:
    """Nodes on this machine, without a gate. Closing it leaves shared storage as it is, and nothing else.

    `fresh`: ranks are started by exec, and find nothing of this process's environment but the `environment` given here. `python` is
    their interpreter; empty: this one. `temporary` is their temporary directory, new with the allocation.
    """

    def __init__(
        self,
        scenario: Scenario,
        shared: Path,
        *,
        fresh: bool = False,
        environment: Mapping[str, str] | None = None,
        python: str = "",
        modules: tuple[str, ...] = (),
    ) -> None:
        with new_directory(scenario.storage.local) as self.directory:
            self.temporary = self.directory / "tmp"
            logs = self.directory / "logs"
            for made in (self.temporary, logs):
                made.mkdir()
            settings = msgspec.structs.replace(
                node_settings(scenario, logs, gate=False, modules=modules, import_path=()),
                temporary=str(self.temporary),
                python=python,
            )
            if fresh:
                given = {
                    **(environment or {}),
                    "PYTHONPATH": code_path(self.directory, (environment or {}).get("PYTHONPATH")),
                }
                settings = msgspec.structs.replace(settings, launch="exec", environment=given)
            self.node = LocalNode(settings)
        self.arena = Arena([self.node] * scenario.topology.nodes, shared, self.directory)
        self.nodes = range(scenario.topology.nodes)
        self.node.reset([self.arena.tiers(number)["local"] for number in self.nodes])

    def empty_shared(self) -> None:
        """Delete what shared storage holds."""
        self.node.reset([self.arena.tiers(0)["shared"]])

    def empty_temporary(self) -> list[str]:
        """The names that lie in the temporary directory; it is emptied of them."""
        found = sorted(os.listdir(self.temporary))
        if found:
            self.node.reset([str(self.temporary)])
        return found

    def local_files(self) -> dict[int, int]:
        """How many files each node's own storage holds."""
        return {number: len(self.node.inventory({"local": self.arena.tiers(number)["local"]})) for number in self.nodes}

    def close(self) -> None:
        """End every process of it; its nodes' own storage and temporary directory are gone afterwards."""
        self.node.close()
        storage.remove(self.directory)


def code_path(directory: Path, given: str | None = None) -> str:
    """A PYTHONPATH by which any interpreter finds this very chaosckpt, and nothing else from where it is installed.

    It leads into `directory`, in which links are made.
    """
    code = directory / "code"
    code.mkdir()
    package = Path(chaosckpt.__file__).parent
    (code / package.name).symlink_to(package)
    found = getattr(metadata.distribution("chaosckpt"), "_path", None)  # its entry points name the built-in targets
    if found is not None and Path(found).is_dir():
        (code / Path(found).name).symlink_to(found)
    return os.pathsep.join([str(code), *filter(None, [given])])


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
            f"drill.restore_python = {python!r} is not a file; name an interpreter, such as /opt/next/bin/python"
        )
    if not os.access(python, os.X_OK):
        raise UsageError(
            f"drill.restore_python = {python!r} is not executable for this user; name an interpreter that is"
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
            f"drill.restore_python = {python!r} can't run a rank: {lines[-1] if lines else f'exit status {done.returncode}'}; install "
            "the packages that chaosckpt and your target need for this interpreter"
        )
    if done.stdout.strip() != "ready":
        raise UsageError(
            f"drill.restore_python = {python!r} exited with status 0 but did not run the imports of a rank; name a Python interpreter"
        )
