"""The arena of a command: one node, a directory `{out}` for what it writes, and a temporary directory of its own."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from chaosckpt.engine.arena import Arena
from chaosckpt.engine.rank.command import script_of
from chaosckpt.engine.runner.node_client import LocalNode
from chaosckpt.engine.wire.orders import CommandNodeSettings, NodeSettings
from chaosckpt.model.command import CommandSettings
from chaosckpt.model.scenario import Scenario
from chaosckpt.probe import VARIABLE


class ScriptArena(Arena):
    """Where one command is run again and again; its tiers are `out` and `tmp`."""

    def tiers(self, node: int) -> dict[str, str]:
        """The directory of each storage tier."""
        return {"out": str(self.directory / "out"), "tmp": str(self.directory / "tmp")}

    warm = False
    """Whether the command runs in forks of a warm interpreter."""

    @property
    def out(self) -> Path:
        """What `{out}` stands for."""
        return self.directory / "out"

    def reset(self) -> None:
        """Empty both tiers."""
        self.nodes[0].reset(sorted(self.tiers(0).values()))


def script_arena(scenario: Scenario, directory: Path, modules: tuple[str, ...] = ()) -> ScriptArena:
    """An arena for a scenario's command. `directory` is marked, and removed at the end."""
    command = scenario.command
    assert command is not None
    for name in ("logs", "out", "tmp"):
        (directory / name).mkdir()
    settings = NodeSettings(
        target="",
        options={},
        workload=scenario.workload,
        modules=modules,
        directory=str(directory / "logs"),
        command=_script_settings(command, directory),
    )
    arena = ScriptArena([LocalNode(settings)], directory, directory)
    arena.warm = settings.command is not None and settings.command.warm
    return arena


def _script_settings(command: CommandSettings, directory: Path) -> CommandNodeSettings:
    writable = (str(directory / "logs"), *_caches())
    return CommandNodeSettings(
        environment=environment(directory),
        directory=os.path.abspath(command.directory),
        warm=not command.cold and is_plain(command.argv),
        tracked={
            f"track{number}": os.path.abspath(os.path.join(command.directory, path))
            for number, path in enumerate(command.track)
        },
        writable=None if command.allow else writable,
        network=command.allow_network,
        checkpoints=command.checkpoints or "",
    )


def environment(directory: Path) -> dict[str, str]:
    """The user's own environment, with a temporary directory of the harness's, one thread unless told otherwise, and no CUDA."""
    found = dict(os.environ)
    found["TMPDIR"] = str(directory / "tmp")
    found[VARIABLE] = str(directory / "logs" / "probe.jsonl")
    for name, value in (("OMP_NUM_THREADS", "1"), ("PYTHONUNBUFFERED", "1"), ("TOKENIZERS_PARALLELISM", "false")):
        found.setdefault(name, value)
    found["PYTHONDONTWRITEBYTECODE"] = "1"
    return found


def is_plain(argv: tuple[str, ...]) -> bool:
    """Whether this is `python SCRIPT` with the interpreter that the harness itself runs in."""
    program = shutil.which(argv[0])
    if program is None or script_of(argv) is None:
        return False
    return Path(program).parent == Path(sys.executable).parent and Path(program).name.startswith("python")


def _caches() -> tuple[str, ...]:
    """Where programs keep what they can make again."""
    home = os.path.expanduser("~")
    return (os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"),)
