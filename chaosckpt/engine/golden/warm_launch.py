"""How a command is launched warm: learned from its own launcher, and tried until a warm run does what the cold ones did.

The launcher is asked once for each number of ranks. From then on the harness starts the ranks itself, as forks of an interpreter
that has imported what they import. Whatever makes that differ from the user's launch shows here, in the files and operations of one
run, and then the command stays cold, with a sentence that says why.
"""

from __future__ import annotations

import os
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from chaosckpt.commands.launches import LearnedLaunch, Warmth, launcher_of, learn
from chaosckpt.commands.random_names import random_parts
from chaosckpt.engine.golden.command_run import COLD, Run
from chaosckpt.engine.node.rank_process import decoded_by
from chaosckpt.engine.runner.arena import Arena
from chaosckpt.engine.runner.command_arena import TEMPORARY, is_forked
from chaosckpt.model.operation import WRITING, tier_of
from chaosckpt.model.scenario import CommandSettings
from chaosckpt.model.topology import Topology

_SHOWN = 3


def learned(run: Run, command: CommandSettings, arena: Arena) -> LearnedLaunch | str:
    """How the ranks of a run were started that its launcher started; else why the harness can't do that, as a sentence's end."""
    found = learn(run.executed, command.argv, str(arena.directory), os.path.dirname(sys.executable))
    if isinstance(found, str):
        return found
    return found if run.modules else "no rank told which modules it had imported"


class Launches:
    """What is known of a command's launch from its cold golden runs: the learned ones, or why there is none."""

    def __init__(self, command: CommandSettings) -> None:
        self._command = command
        self.found: dict[int, LearnedLaunch] = {}
        self.why = ""
        self.alone = False
        """Whether it is a script that is its only rank, so that there is nothing to be learned."""

    def take(self, run: Run, arena: Arena, topology: Topology) -> Topology:
        """Learn from a cold run, which was made for a topology; returns that with as many ranks as there really were."""
        self.alone = is_forked(self._command) and not run.executed
        if self.alone or self._command.cold or self.why:
            return topology
        found = learned(run, self._command, arena)
        if isinstance(found, str):
            self.why = f"every launch goes through {launcher_of(self._command.argv)}, cold: {found}"
            self.found.clear()
            return topology
        self.found[len(found.ranks)] = found
        if topology.world_size == 1 and len(found.ranks) > 1:
            return Topology((len(found.ranks),))
        return topology

    def warmths(self, modules: Sequence[str]) -> Iterator[Warmth]:
        """Ways to launch it, the warmest first; the last one is always right."""
        launches, known = tuple(self.found.values()), tuple(modules)
        if known and (launches or self.alone):
            yield Warmth(modules=known, launches=launches, short_end=True)
            yield Warmth(modules=known, launches=launches)
        if not known or not self.alone:
            yield COLD


def unlike(cold: Run, again: Run, warm: Run, decode: Callable[[Sequence[str]], list[str]]) -> str:
    """In what a warm run differs from two cold ones where these agree, as a sentence's end; empty where in nothing.

    `decode` reads the random parts of names alike in all runs.
    """
    if warm.outcome != "finished":
        tail = warm.output.strip()[-300:] or "nothing"
        return f"ranks started by chaosckpt {warm.outcome} ({warm.waited or f'they printed: {tail}'})"
    files = [_files(run, decode) for run in (cold, again, warm)]
    steady = {path for path in files[0] if files[0][path] == files[1].get(path)}
    sizes = [{path: seen[0] for path, seen in found.items()} for found in files]
    other = sorted(
        path
        for path in files[0].keys() | files[2].keys()
        if (path in steady and files[2].get(path) != files[0][path])
        or (path not in steady and sizes[0].get(path) == sizes[1].get(path) != sizes[2].get(path))
    )
    if other:
        return f"with ranks started by chaosckpt, other files come out: {', '.join(other[:_SHOWN])}"
    done = [_operations(run, decode) for run in (cold, again, warm)]
    differing = sorted(key for key in done[0] | done[2] if done[0][key] == done[1][key] != done[2][key])
    if differing:
        rank, op, path = differing[0]
        return f"with ranks started by chaosckpt, other operations are performed: {op} of {path} by rank {rank}"
    return ""


def _files(run: Run, decode: Callable[[Sequence[str]], list[str]]) -> Mapping[str, tuple[int, str]]:
    names = decode([path for path, _, _ in run.files])
    return {name: (size, digest) for name, (_, size, digest) in zip(names, run.files, strict=True)}


def _operations(run: Run, decode: Callable[[Sequence[str]], list[str]]) -> Counter[tuple[int, str, str]]:
    """How often each rank did what to which path; looks, which ranks may race for, are left out.

    So is what is done to temporary files, as the import of some modules does, which a warm rank needn't import again.
    """
    changing = [
        operation
        for operation in run.trace
        if operation.address.op in WRITING and tier_of(operation.address.path) != TEMPORARY
    ]
    names = decode([operation.raw for operation in changing])
    return Counter(
        (operation.address.rank, operation.address.op, name) for operation, name in zip(changing, names, strict=True)
    )


def common_names(one: Run, other: Run) -> Callable[[Sequence[str]], list[str]]:
    """What reads the names of two runs alike whose parts were drawn anew in each."""
    return decoded_by(random_parts(paths_of(one), paths_of(other), socket.gethostname()))


def paths_of(run: Run) -> list[str]:
    """Every path that the operations of a run name, in order."""
    return [path for op in run.trace for path in (op.raw, op.destination) if path is not None]
