"""Where output goes: results to stdout, as text or as one JSON object, and everything else to stderr."""

from __future__ import annotations

import os
import platform
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from chaosckpt.errors import UsageError
from chaosckpt.measure.measurement import Provenance

WIDE = 160
"""Columns of tables where no terminal says how wide it is."""


class _Console(Console):
    """Lets the command line handle a broken pipe: rich itself would exit with the code of violations."""

    def on_broken_pipe(self) -> None:
        """Called by rich while it handles the BrokenPipeError."""
        raise


def console() -> Console:
    """Standard output. Colours only on a terminal; elsewhere no line is wrapped."""
    found = _Console(soft_wrap=True, highlight=False)
    return found if found.is_terminal else _Console(soft_wrap=True, highlight=False, width=WIDE)


def error_console() -> Console:
    """Standard error, for progress and remarks."""
    return Console(stderr=True, highlight=False)


def json_text(value: Any) -> str:
    """One JSON object, indented for people."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def print_json(value: Any) -> None:
    """One JSON object on standard output, and nothing else."""
    click.echo(json_text(value))


def plain(value: Any) -> dict[str, Any]:
    """A Struct as the dictionary that its JSON would be."""
    result: dict[str, Any] = msgspec.to_builtins(value)
    return result


def provenance() -> Provenance:
    """Of a result that this command line asks for now."""
    return Provenance(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        host=platform.node(),
        command=shlex.join(["chaosckpt", *(click.get_current_context().find_object(tuple) or ())]),
    )


def page(html: str | None) -> Path | None:
    """The file that --html names. Raises UsageError, before anything runs, if it can't be written at the end."""
    if html is None:
        return None
    path = Path(html).expanduser()
    problem = ""
    if path.is_dir():
        problem = "it is a directory"
    elif not path.parent.is_dir():
        problem = f"there is no directory {path.parent}"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        problem = "it can't be written"
    if problem:
        raise UsageError(f"--html {html}: {problem}; name a file that can be written")
    return path
