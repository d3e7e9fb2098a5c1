"""How errors leave the command line: one sentence and an exit code, a traceback only for a fault of chaosckpt itself."""

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

from chaosckpt.errors import ChaosckptError, of_this_machine

OWN_FAULT = 3
INTERRUPTED = 130

READER_GONE = 128 + 13
"""What a shell shows for a program that ended by SIGPIPE."""

_run_directory: Path | None = None


class ReaderGoneError(Exception):
    """Whoever read our output has gone, as `| head` does."""


class Group(click.Group):
    """A group whose commands may find that nobody reads them: click itself would end with the exit code of violations."""

    def invoke(self, context: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(context)
        except BrokenPipeError as error:
            raise ReaderGoneError from error


def report_into(run_directory: Path) -> None:
    """From now on, the traceback of a fault of chaosckpt is written into this run directory."""
    global _run_directory
    _run_directory = run_directory


def guarded(group: click.Group, arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and end the process; nothing but an exit code leaves here."""
    arguments = sys.argv[1:] if arguments is None else arguments
    before = {number: signal.signal(number, _end_in_order) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        code = group.main(args=arguments, prog_name="chaosckpt", standalone_mode=False)
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
        # Standard output leads nowhere from now on, so that the flush at exit is quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = READER_GONE
    except OSError as error:
        code = OWN_FAULT
        if (why := of_this_machine(error)) is not None and "--debug" not in arguments:
            click.echo(f"chaosckpt: {why}", err=True)
        else:
            _own_fault(debug="--debug" in arguments)
    except Exception:  # Whatever else escapes is a fault of chaosckpt, and is told as that.
        _own_fault(debug="--debug" in arguments)
        code = OWN_FAULT
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    sys.exit(code if isinstance(code, int) else 0)


def _end_in_order(number: int, frame: FrameType | None) -> NoReturn:
    """A wish to end is met as Ctrl-C is, so that processes and storage are cleared away."""
    raise KeyboardInterrupt


def _own_fault(debug: bool) -> None:
    details = traceback.format_exc()
    summary = details.strip().splitlines()[-1]
    if debug:
        click.echo(details, err=True, nl=False)
        where = "its traceback stands above"
    else:
        where = _stored(details)
    click.echo(f"chaosckpt: this is a fault of chaosckpt, not of what you test: {summary}; {where}", err=True)


def _stored(details: str) -> str:
    """Write the traceback to a file and say where it is."""
    directory = _run_directory or Path(tempfile.gettempdir())
    try:
        descriptor, name = tempfile.mkstemp(prefix="chaosckpt-fault-", suffix=".log", dir=directory)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(details)
    except OSError:
        return "run it with --debug to see the traceback"
    return f"its traceback is in {name}; please report it with that file"
