"""How errors leave the command line: one sentence and an exit code, and a traceback only for a bug in chaosckpt itself."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from chaosckpt.campaign.options import FILE as OPTIONS
from chaosckpt.errors import ChaosckptError, of_this_machine

OWN_BUG = 3
INTERRUPTED = 130

READER_GONE = 128 + 13
"""What a shell shows for a program that SIGPIPE ended."""

_run_directory: Path | None = None


class ReaderGoneError(Exception):
    """The reader of our output has gone, as `| head` does."""


class CommandGroup(click.Group):
    """A group that turns a broken pipe into ReaderGoneError; click itself would end with the exit code of violations."""

    def invoke(self, context: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(context)
        except BrokenPipeError as error:
            raise ReaderGoneError from error


def report_into(run_directory: Path) -> None:
    """From now on, write the traceback of a bug in chaosckpt into this run directory."""
    global _run_directory
    _run_directory = run_directory


def guarded(group: click.Group, arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code, whatever happens."""
    arguments = sys.argv[1:] if arguments is None else arguments
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        code = group.main(args=arguments, prog_name="chaosckpt", standalone_mode=False, obj=tuple(arguments))
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = INTERRUPTED
    except ChaosckptError as error:
        click.echo(f"chaosckpt: {error}", err=True)
        code = error.exit_code
    except (ReaderGoneError, BrokenPipeError):
        # Send the rest of standard output nowhere, so that the flush at exit is quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = READER_GONE
    except OSError as error:
        code = OWN_BUG
        if (
            why := of_this_machine(error, _next_step(), str(_run_directory or ""))
        ) is not None and "--debug" not in arguments:
            click.echo(f"chaosckpt: {why}", err=True)
        else:
            _own_bug(debug="--debug" in arguments)
    except Exception:  # Whatever else escapes is a bug in chaosckpt, and is reported as one.
        _own_bug(debug="--debug" in arguments)
        code = OWN_BUG
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    sys.exit(code if isinstance(code, int) else 0)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that processes and storage are cleaned up."""
    raise KeyboardInterrupt


def _next_step() -> str:
    """What to do once the machine is mended: continue the run, where there is one, else try again."""
    if _run_directory is not None and (_run_directory / OPTIONS).is_file():
        return f"continue with: chaosckpt fuzz --resume {_run_directory}"
    return "try again"


def _own_bug(debug: bool) -> None:
    details = traceback.format_exc()
    summary = details.strip().splitlines()[-1]
    if debug:
        click.echo(details, err=True, nl=False)
        where = "the traceback stands above; please report it"
    else:
        where = _stored(details)
    click.echo(f"chaosckpt: this is a bug in chaosckpt, not in what you test: {summary}; {where}", err=True)


def _stored(details: str) -> str:
    """Write the traceback to a file and return the words that say where it is."""
    directory = _run_directory or Path(tempfile.gettempdir())
    try:
        descriptor, name = tempfile.mkstemp(prefix="chaosckpt-fault-", suffix=".log", dir=directory)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(details)
    except OSError:
        return "run the command with --debug to see the traceback"
    return f"please report it with the traceback in {name}"
