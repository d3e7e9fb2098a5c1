"""The arena of a command: one node, a directory `{out}` for what it writes, and a temporary directory of its own."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from chaosckpt.commands.naming import FileSeen
from chaosckpt.engine.rank.command import script_of
from chaosckpt.engine.runner.arena import Arena, new_directory
from chaosckpt.engine.runner.node_client import LocalNode
from chaosckpt.engine.wire.orders import CommandNodeSettings, NodeSettings
from chaosckpt.model.scenario import CommandSettings, Scenario
from chaosckpt.probe import VARIABLE


class CommandArena(Arena):
    """Where one command is run again and again; its tiers are `out` and `tmp`."""

    node_tiers = ()
    shared_tiers = ("out", "tmp")

    def tiers(self, node: int) -> dict[str, str]:
        """The directory of each storage tier."""
        return {"out": str(self.directory / "out"), "tmp": str(self.directory / "tmp")}


def out_of(arena: Arena) -> str:
    """What `{out}` stands for."""
    return arena.tiers(0)["out"]


def files_in_out(arena: Arena) -> list[FileSeen]:
    """Every file that the command has left below `{out}`."""
    return arena.nodes[0].manifest("out", out_of(arena))


def open_command_arena(scenario: Scenario, command: CommandSettings, modules: tuple[str, ...] = ()) -> Arena:
    """An arena for a command on this machine, warmed with these modules where the command can be forked."""
    with new_directory(scenario.storage.shared) as directory:
        for name in ("logs", "out", "tmp"):
            (directory / name).mkdir()
        settings = NodeSettings(
            target="",
            options={},
            workload=scenario.workload,
            modules=modules,
            directory=str(directory / "logs"),
            command=_node_settings(command, directory),
        )
        return CommandArena([LocalNode(settings)], directory, directory)


def is_forked(command: CommandSettings) -> bool:
    """Whether it runs in forks of a warm interpreter, rather than as a program that is started anew each time."""
    return not command.cold and is_plain(command.argv)


def _node_settings(command: CommandSettings, directory: Path) -> CommandNodeSettings:
    writable = (str(directory / "logs"), *_caches())
    return CommandNodeSettings(
        environment=environment(directory),
        directory=os.path.abspath(command.directory),
        warm=is_forked(command),
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
