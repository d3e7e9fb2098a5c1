"""Learned launches: how a user's own launcher started each rank, so that the harness can start them itself. Pure.

A launcher such as torchrun costs seconds of imports and processes that only watch. What it gives its ranks is known once it has been
seen: a program, arguments, an environment, a directory. A rank is the topmost process of its number that runs a Python script: what a
rank starts by itself (loader workers, trackers) carries the same number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

import msgspec

DIRECTORY = "{arena}"
"""Stands in a learned launch for the directory of the arena, which differs from one arena to the next."""
AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"
ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
PORT = "MASTER_PORT"
HOOK = "CHAOSCKPT_HOOK"
"""The environment variable that names the directory to which every interpreter of a cold command reports."""
OBSERVER = "chaosckpt.observers.torch"
"""The module that observes what torch trains."""
OBSERVE = "CHAOSCKPT_OBSERVE"
"""That which names the directory in which observers leave what it trains."""
_OF_RANKS = (
    "RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "ROLE_RANK", "SLURM_PROCID", "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK", ERROR_FILE,
)  # fmt: skip
_FLAGS_THAT_FIT = frozenset({"-u"})
"""Options of the interpreter that a warm one can have, too: its output is never kept back."""
_LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "lightning", "fabric", "mpirun", "srun")
_MODULES = {"torch.distributed.run": "torchrun", "torch.distributed.launch": "torchrun"}
_VENV = re.compile(r"python[0-9.]*$")


class Executed(msgspec.Struct, frozen=True):
    """A process of a rank, as it was executed. `rank` is None for the one that starts the others and says no number."""

    pid: int
    rank: int | None
    argv: tuple[str, ...]
    environment: dict[str, str]
    directory: str


class RankLaunch(msgspec.Struct, frozen=True):
    """What one rank is started with; DIRECTORY stands for the arena's directory."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    directory: str


class LearnedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """How every rank is started without the launcher. `ranks` are by number."""

    launcher: str
    ranks: tuple[RankLaunch, ...]

    @property
    def has_agent_store(self) -> bool:
        """Whether the launcher keeps the store by which ranks meet, so that it outlives rank 0."""
        return self.ranks[0].environment.get(AGENT_STORE) == "True"

    @property
    def common(self) -> dict[str, str]:
        """The part of the environment that is the same on all ranks and names none: that of the interpreter they are forked from."""
        first = self.ranks[0].environment
        return {
            name: value
            for name, value in first.items()
            if name not in _OF_RANKS
            and name != PORT
            and all(other.environment.get(name) == value for other in self.ranks)
        }

    def placed(self, directory: str) -> LearnedLaunch:
        """The launch in an arena of this directory."""

        def put(text: str) -> str:
            return text.replace(DIRECTORY, directory)

        return msgspec.structs.replace(
            self,
            ranks=tuple(
                RankLaunch(
                    tuple(map(put, rank.argv)),
                    {name: put(value) for name, value in rank.environment.items()},
                    put(rank.directory),
                )
                for rank in self.ranks
            ),
        )

    def resuming(self, words: Sequence[str]) -> LearnedLaunch:
        """The launch with these words behind the script's own, as they are added to the command's."""
        ranks = tuple(msgspec.structs.replace(rank, argv=(*rank.argv, *words)) for rank in self.ranks)
        return msgspec.structs.replace(self, ranks=ranks)


class Warmth(msgspec.Struct, frozen=True, kw_only=True):
    """How a command is launched in forks of a warm interpreter; without anything it is launched cold, as its user does."""

    modules: tuple[str, ...] = ()
    """What that interpreter has imported: all that the command's ranks import."""
    launches: tuple[LearnedLaunch, ...] = ()
    """The learned launch for each number of ranks; none for a script that is its only rank."""
    short_end: bool = False
    """Whether ranks end without tearing their modules down, which the golden runs have shown to leave the same files."""

    def launch(self, world_size: int) -> LearnedLaunch | None:
        """The launch of so many ranks, where it was learned."""
        return next((launch for launch in self.launches if len(launch.ranks) == world_size), None)


def script_of(argv: Sequence[str]) -> tuple[str, bool, tuple[str, ...]] | None:
    """(file or module, whether it is a module, its arguments) of `python [-u] SCRIPT ...`; None for any other command."""
    words = list(argv[1:])
    while words and words[0] in _FLAGS_THAT_FIT:
        words.pop(0)
    if len(words) > 1 and words[0] == "-m":
        return words[1], True, tuple(words[2:])
    if words and not words[0].startswith("-"):
        return words[0], False, tuple(words[1:])
    return None


def launcher_of(argv: Sequence[str]) -> str:
    """What starts the ranks of a command, in a word: "torchrun", "accelerate", or the script itself."""
    name = os.path.basename(argv[0])
    if name in _LAUNCHERS:
        return name
    script = script_of(argv)
    if _VENV.match(name) and script is not None:
        if script[1]:
            return _MODULES.get(script[0], script[0])
        inner = os.path.basename(script[0])
        return inner if inner in _LAUNCHERS else "the script itself"
    return name


def learn(seen: Sequence[Executed], command: Sequence[str], directory: str, home: str) -> LearnedLaunch | str:
    """The launch of the ranks among these processes, or why it can't be learned, as the end of a sentence.

    `directory` is that of the arena in which they ran; `home` the folder of the interpreter of which forks would be made.
    """
    found: dict[int, Executed] = {}
    for process in seen:
        if process.rank is not None and process.rank not in found and _runs_a_script(process.argv):
            found[process.rank] = process
    if not found:
        return "no process said which rank it is (RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK or LOCAL_RANK)"
    if sorted(found) != list(range(len(found))):
        missing = next(rank for rank in range(len(found)) if rank not in found)
        return f"there was no process of rank {missing} that runs a Python script"
    worlds = {process.environment["WORLD_SIZE"] for process in found.values() if "WORLD_SIZE" in process.environment}
    if worlds - {str(len(found))}:
        return f"{len(found)} ranks were seen, but WORLD_SIZE said {', '.join(sorted(worlds))}"
    for rank, process in sorted(found.items()):
        program = _program(process)
        if os.path.dirname(program) != home:
            return f"rank {rank} runs in another Python than chaosckpt's ({program})"
    peers = [process for process in found.values() if "LOCAL_RANK" in process.environment]
    ranks = tuple(_rank_launch(rank, found[rank], peers, directory) for rank in range(len(found)))
    return LearnedLaunch(launcher=launcher_of(command), ranks=ranks)


def _runs_a_script(argv: Sequence[str]) -> bool:
    return bool(argv) and bool(_VENV.match(os.path.basename(argv[0]))) and script_of(argv) is not None


def _program(process: Executed) -> str:
    name = process.argv[0]
    if "/" in name:
        return os.path.join(process.directory, name)
    places = process.environment.get("PATH", os.defpath).split(os.pathsep)
    return next((path for place in places if os.access(path := os.path.join(place, name), os.X_OK)), name)


def _rank_launch(rank: int, process: Executed, peers: Sequence[Executed], directory: str) -> RankLaunch:
    environment = dict(process.environment)
    if "RANK" not in environment and "LOCAL_RANK" not in environment and peers:
        # Rank 0 started the others by itself. With the environment of a peer it takes them for started.
        environment |= {**_of_launch(peers[0].environment), "LOCAL_RANK": str(rank)}
    hook = environment.pop(HOOK, "")
    environment.pop(OBSERVE, None)
    if hook:
        paths = [
            path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if os.path.basename(path) != "hook"
        ]
        environment.pop("PYTHONPATH", None)
        if any(paths):
            environment["PYTHONPATH"] = os.pathsep.join(paths)

    def lifted(text: str) -> str:
        return text.replace(directory, DIRECTORY)

    if ERROR_FILE in environment:
        environment[ERROR_FILE] = f"{DIRECTORY}/logs/error-{rank}.json"
    return RankLaunch(
        tuple(map(lifted, process.argv)),
        {name: lifted(value) for name, value in environment.items()},
        lifted(process.directory),
    )


def _of_launch(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables by which a rank finds the others."""
    names = ("WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", PORT, "LOCAL_WORLD_SIZE", "GROUP_RANK")
    return {name: environment[name] for name in names if name in environment}
