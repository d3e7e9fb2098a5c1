"""The arena of a command: where it runs again and again, what it leaves there, and its result."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from chaosckpt.commands.launches import HOOK, OBSERVE, Warmth, script_of
from chaosckpt.commands.naming import FileSeen
from chaosckpt.engine import rank
from chaosckpt.engine.node import network
from chaosckpt.engine.runner.arena import Arena, new_directory
from chaosckpt.engine.runner.node_client import LocalNode
from chaosckpt.engine.wire.orders import CommandNodeSettings, NodeSettings
from chaosckpt.engine.wire.programs import CommandProgram
from chaosckpt.model.scenario import OUT, CommandSettings, Scenario
from chaosckpt.probe import VARIABLE

TEMPORARY = "tmp"
"""The tier of a command's temporary files."""


class CommandArena(Arena):
    """Where one command is run again and again; its tiers are `out` and `tmp`."""

    node_tiers = ()
    shared_tiers = ("out", TEMPORARY)

    def tiers(self, node: int) -> dict[str, str]:
        """The directory of each storage tier."""
        return {"out": str(self.directory / "out"), TEMPORARY: str(self.directory / "tmp")}


def out_of(arena: Arena) -> str:
    """What `{out}` stands for."""
    return arena.tiers(0)["out"]


def files_in_out(arena: Arena) -> list[FileSeen]:
    """Every file that the command has left below `{out}`."""
    return arena.nodes[0].manifest("out", out_of(arena))


def program_of(
    arena: Arena, command: CommandSettings, warmth: Warmth, world_size: int, *, resuming: bool = False
) -> CommandProgram:
    """What the node is told to run, for one launch of so many ranks."""
    launch = warmth.launch(world_size)
    if launch is not None:
        added = command.added(out_of(arena), world_size) if resuming else ()
        launch = launch.placed(str(arena.directory)).resuming(added)
    return CommandProgram(
        argv=command.words(out_of(arena), world_size, resuming=resuming), launch=launch, short_end=warmth.short_end
    )


def open_command_arena(scenario: Scenario, command: CommandSettings, warmth: Warmth) -> Arena:
    """An arena for a command on this machine, as warm as that."""
    with new_directory(scenario.storage.shared) as directory:
        for name in ("logs", "logs/hook", "out", "tmp"):
            (directory / name).mkdir()
        settings = NodeSettings(
            target="",
            options={},
            workload=scenario.workload,
            modules=warmth.modules,
            directory=str(directory / "logs"),
            command=_node_settings(command, directory, warmth),
        )
        return CommandArena([LocalNode(settings)], directory, directory)


def is_forked(command: CommandSettings) -> bool:
    """Whether it runs in forks of a warm interpreter, rather than as a program that is started anew each time."""
    return not command.cold and is_plain(command.argv)


def why_shared(command: CommandSettings) -> str:
    """Why runs of it share this machine's network, where two can't have the same port; empty where each node has its own."""
    shared = "the command shares this machine's network"
    if command.allow_network:
        return f"with --allow-network {shared}"
    problem = network.problem()
    return problem and f"{problem}, so that {shared}"


def _node_settings(command: CommandSettings, directory: Path, warmth: Warmth) -> CommandNodeSettings:
    writable = (str(directory / "logs"), *_caches())
    warm = bool(warmth.modules)
    own = environment(directory)
    if warmth.launches:
        own = warmth.launches[0].placed(str(directory)).common
    elif not warm:
        own = hooked(own, directory, observed=not command.no_observe)
    return CommandNodeSettings(
        environment=own,
        directory=os.path.abspath(command.directory),
        warm=warm,
        tracked={
            f"track{number}": os.path.abspath(os.path.join(command.directory, path))
            for number, path in enumerate(command.track)
        },
        writable=None if command.allow else writable,
        network=command.allow_network,
        own_network=not why_shared(command),
        checkpoints=command.checkpoints or "",
        observed="" if command.no_observe else str(directory / "logs" / "hook"),
    )


def hooked(environment: dict[str, str], directory: Path, *, observed: bool) -> dict[str, str]:
    """The environment in which every interpreter of a cold tree reports to the arena of this directory."""
    paths = [str(Path(rank.__file__).with_name("hook")), environment.get("PYTHONPATH", "")]
    place = str(directory / "logs" / "hook")
    named = {HOOK: place, OBSERVE: place} if observed else {HOOK: place}
    return environment | named | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def environment(directory: Path) -> dict[str, str]:
    """The user's own environment, with a temporary directory of the harness's, one thread unless told otherwise, and no CUDA.

    Strings have the same hashes in every interpreter, as forks of one have them anyway.
    """
    found = dict(os.environ)
    found["TMPDIR"] = str(directory / "tmp")
    found[VARIABLE] = str(directory / "logs" / "probe.jsonl")
    for name, value in (
        ("OMP_NUM_THREADS", "1"),
        ("PYTHONUNBUFFERED", "1"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("PYTHONHASHSEED", "0"),
    ):
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
