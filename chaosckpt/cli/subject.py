"""What a campaign is about, as the command line names it: a scenario, or a command behind `--` with its signs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from chaosckpt.campaign import scenario
from chaosckpt.errors import UsageError
from chaosckpt.model.command import RANKS, CommandSettings, ranks_told
from chaosckpt.model.scenario import Scenario

COMMAND = "chaosckpt.command"

_SIGNS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--checkpoints",
        metavar="GLOB",
        help="Of a command: what its checkpoints are called, as in '{out}/ckpt-*'; the * is the step. Without a * it is one that "
        "every save replaces.",
    ),
    click.option(
        "--resumed", metavar="REGEX", help="The line that says what it resumed from, as in 'resumed from step (\\d+)'."
    ),
    click.option("--saved", metavar="REGEX", help="The line that says that a step was saved; it is then held to it."),
    click.option(
        "--result", metavar="FILE", help="A file that must be the same at the end as after an uninterrupted run."
    ),
    click.option(
        "--result-cmd",
        "result_command",
        metavar="CMD",
        help="A command that prints one number at the end, instead of --result.",
    ),
    click.option("--tolerance", type=click.FloatRange(min=0), help="By how much that number may differ. Default 0."),
    click.option(
        "--resume-args", "resume_argv", metavar="WORDS", help="What is added to the command once something was saved."
    ),
    click.option(
        "--track",
        multiple=True,
        metavar="DIR",
        help="A further directory whose operations are traced; it is never emptied.",
    ),
    click.option(
        "--ranks", metavar="N,N,…", help="Numbers of ranks, the first for the start; the command needs {nproc}."
    ),
    click.option("--cold", is_flag=True, help="Start the command's interpreter anew each time."),
    click.option("--allow", is_flag=True, help="Let the command change files anywhere."),
    click.option("--allow-network", is_flag=True, help="Let the command connect to other machines."),
)
_NAMES = (
    "checkpoints", "resumed", "saved", "result", "result_command", "tolerance", "resume_argv", "track", "ranks", "cold", "allow",
    "allow_network",
)  # fmt: skip

_SPELLED = {"result_command": "result-cmd", "resume_argv": "resume-args"}


class WithCommand(click.Command):
    """A command line that may end in `--` and the words of a command of the user's, kept as they are."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            context.meta[COMMAND] = tuple(args[place + 1 :])
            if not context.meta[COMMAND]:
                raise UsageError("there is no command behind --; write it there, as in -- python train.py --out {out}")
            args = args[:place]
        return super().parse_args(context, args)


def signs_of_a_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that tell what to look for in a command."""
    for option in reversed(_SIGNS):
        command = option(command)
    return command


def take_signs(given: dict[str, Any]) -> dict[str, Any]:
    """Take those options out of all that were given; only those that say something are returned."""
    taken = {name: given.pop(name) for name in _NAMES}
    return {name: value for name, value in taken.items() if value not in (None, (), False)}


class NamedSubject(NamedTuple):
    """A scenario by its name, or the words of a command with its signs."""

    what: str | None
    words: tuple[str, ...]
    signs: dict[str, Any]

    @property
    def named(self) -> str:
        """What was named, for a person; empty where nothing was."""
        return self.what or shlex.join(self.words) or _option(self.signs)

    def scenario(self) -> Scenario:
        """The scenario that is meant. Raises UsageError."""
        if self.words:
            if self.what is not None:
                raise UsageError(f"{self.what!r} and a command behind --: a campaign is about one of them")
            return self._of_command()
        if self.signs:
            raise UsageError(
                f"{_option(self.signs)} is about a command, and there is none: write it last, behind --, as in "
                "-- python train.py --out {out}"
            )
        if self.what is None:
            raise UsageError(
                "name what to fuzz: a scenario (see `chaosckpt list scenarios`), a target as my_target.py:MyTarget, or a command, as "
                "in -- python train.py --out {out}"
            )
        return scenario.find(self.what)

    def _of_command(self) -> Scenario:
        signs = dict(self.signs)
        ranks = _ranks(signs.pop("ranks", None), self.words)
        if "resume_argv" in signs:
            signs["resume_argv"] = tuple(_split(signs["resume_argv"]))
        command = msgspec.convert({**signs, "argv": self.words, "directory": str(Path.cwd())}, CommandSettings)
        return scenario.scenario_for_command(command, ranks)


def _option(signs: dict[str, Any]) -> str:
    """The first of the given signs as it stands on the command line; empty where there is none."""
    return next((f"--{_SPELLED.get(name, name.replace('_', '-'))}" for name in signs), "")


def _split(words: str) -> list[str]:
    try:
        return shlex.split(words)
    except ValueError as error:
        raise UsageError(f"--resume-args {words!r} can't be split into words: {error}") from error


def _ranks(given: str | None, words: Sequence[str]) -> tuple[int, ...]:
    """The numbers of ranks: as given, else as torchrun's own option in the command says, else one."""
    if given is not None:
        parts = given.split(",")
        if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
            raise UsageError(f"--ranks {given!r} must be whole numbers with commas between them, such as 2,3,1")
        return tuple(int(part) for part in parts)
    if any(RANKS in word for word in words):
        raise UsageError(f"the command has {RANKS} in it: say how many that is with --ranks, such as --ranks 2,1")
    return (ranks_told(words),)
