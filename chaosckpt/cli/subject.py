"""What a campaign tests, as the command line names it: a scenario, or a command after `--` with its markers."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from chaosckpt.errors import UsageError
from chaosckpt.model.scenario import RANKS, CommandSettings, Scenario, ranks_told
from chaosckpt.scenario import load as scenario

COMMAND = "chaosckpt.command"

_SIGNS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--checkpoints",
        metavar="GLOB",
        help="Glob of its checkpoints, as in '{out}/ckpt-*'; the last * is the step number. Without *: one checkpoint that each save "
        "overwrites. Default: guessed from the files of a fault-free run.",
    ),
    click.option(
        "--resumed",
        metavar="REGEX",
        help="Regular expression for the line that reports the step it resumed from, as in 'resumed from step (\\d+)'. Its one "
        "group is the step number.",
    ),
    click.option(
        "--saved",
        metavar="REGEX",
        help="Regular expression for the line that reports a finished save, with the step number as its one group. From then on "
        "that step must be recoverable.",
    ),
    click.option(
        "--result",
        metavar="FILE",
        help="File below {out} whose final content must equal that of an uninterrupted run, byte by byte.",
    ),
    click.option(
        "--result-cmd",
        "result_command",
        metavar="CMD",
        help="Command that prints one number once the job has ended. The number must equal that of an uninterrupted run. Replaces "
        "--result.",
    ),
    click.option(
        "--tolerance",
        type=click.FloatRange(min=0),
        metavar="X",
        help="Largest difference from the number of the uninterrupted run that --result-cmd may print. Default: 0.",
    ),
    click.option(
        "--resume-args",
        "resume_argv",
        metavar="ARGS",
        help="Arguments to append, in one pair of quotes, when the job is launched with a checkpoint to resume from.",
    ),
    click.option(
        "--track",
        multiple=True,
        metavar="DIR",
        help="Trace and inject faults in this directory, too. It is never emptied. Can be given several times.",
    ),
    click.option(
        "--ranks",
        metavar="N,N,…",
        help="Numbers of ranks to run with, as in 2,1; the first one starts the job. Several need {nproc} in the command. Default: "
        "torchrun's --nproc-per-node, else 1.",
    ),
    click.option(
        "--cold",
        is_flag=True,
        help="Launch every trial as you would, in new interpreters, instead of forking warm ones.",
    ),
    click.option(
        "--no-observe",
        is_flag=True,
        help="Don't look at what the ranks train; then only lines that the script prints tell which step it resumed from.",
    ),
    click.option(
        "--allow",
        is_flag=True,
        help="Allow the command to change files outside the directories that chaosckpt provides.",
    ),
    click.option(
        "--allow-network",
        is_flag=True,
        help="Allow the command to connect to other machines. It then shares this machine's network, and one trial runs at a time.",
    ),
)
_NAMES = (
    "checkpoints", "resumed", "saved", "result", "result_command", "tolerance", "resume_argv", "track", "ranks", "cold", "allow",
    "allow_network", "no_observe",
)  # fmt: skip

_SPELLED = {"result_command": "result-cmd", "resume_argv": "resume-args"}


class WithCommand(click.Command):
    """A command line that may end in `--` and the words of the user's own command, which are kept as they are."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            context.meta[COMMAND] = tuple(args[place + 1 :])
            if not context.meta[COMMAND]:
                raise UsageError("there is no command after --; write it there, as in -- python train.py --out {out}")
            args = args[:place]
        return super().parse_args(context, args)

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the options that describe a command in a section of their own."""
        for title, of_command in (("Options", False), ("Options for a COMMAND", True)):
            records = [
                parameter.get_help_record(context)
                for parameter in self.get_params(context)
                if isinstance(parameter, click.Option) and (parameter.name in _NAMES) == of_command
            ]
            with formatter.section(title):
                formatter.write_dl([record for record in records if record is not None])


def signs_of_a_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what to look for in a command."""
    for option in reversed(_SIGNS):
        command = option(command)
    return command


def take_signs(given: dict[str, Any]) -> dict[str, Any]:
    """Take those options out of all that were given; return the ones that were set."""
    taken = {name: given.pop(name) for name in _NAMES}
    return {name: value for name, value in taken.items() if value not in (None, (), False)}


class NamedSubject(NamedTuple):
    """A scenario by its name, or the words of a command with its markers."""

    what: str | None
    words: tuple[str, ...]
    signs: dict[str, Any]

    @property
    def named(self) -> str:
        """What was named, for a person; empty if nothing was."""
        return self.what or shlex.join(self.words) or _option(self.signs)

    def scenario(self) -> Scenario:
        """The scenario to run. Raises UsageError."""
        if self.words:
            if self.what is not None:
                raise UsageError(
                    f"{self.what!r} and a command after --: a campaign tests one of them; leave out the other"
                )
            return self._of_command()
        if self.signs:
            raise UsageError(
                f"{_option(self.signs)} describes a command, but there is no command: write it last, after --, as in "
                "-- python train.py --out {out}"
            )
        if self.what is None:
            raise UsageError(
                "name what to fuzz: a scenario (see `chaosckpt list scenarios`), a target such as my_target.py:MyTarget, or a command "
                "after --, as in -- python train.py --out {out}"
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
    """The first of the given markers as it stands on the command line; empty if there is none."""
    return next((f"--{_SPELLED.get(name, name.replace('_', '-'))}" for name in signs), "")


def _split(words: str) -> list[str]:
    try:
        return shlex.split(words)
    except ValueError as error:
        raise UsageError(f"--resume-args {words!r} can't be split into arguments: {error}; check its quotes") from error


def _ranks(given: str | None, words: Sequence[str]) -> tuple[int, ...]:
    """The numbers of ranks: those given, else that of torchrun's own option in the command, else one."""
    if given is not None:
        parts = given.split(",")
        if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
            raise UsageError(f"--ranks {given!r} must be whole numbers above 0, separated by commas, such as 2,3,1")
        return tuple(int(part) for part in parts)
    if any(RANKS in word for word in words):
        raise UsageError(f"the command contains {RANKS}: say what it stands for with --ranks, such as --ranks 2,1")
    return (ranks_told(words),)
