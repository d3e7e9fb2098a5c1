"""Where output goes: results to stdout, one JSON object where it was asked for, everything else to stderr."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from chaosckpt.errors import UsageError

WIDE = 160
"""Columns of tables where there is no terminal to tell."""


class _Console(Console):
    """Leaves it to the command line what it means that nobody reads any more: rich would end with the code of violations."""

    def on_broken_pipe(self) -> None:
        """Called by rich while it handles the BrokenPipeError."""
        raise


def console() -> Console:
    """Standard output. Colours only on a terminal; elsewhere no line is broken for a width that nobody has."""
    found = _Console(soft_wrap=True, highlight=False)
    return found if found.is_terminal else _Console(soft_wrap=True, highlight=False, width=WIDE)


def error_console() -> Console:
    """Standard error, for progress and remarks."""
    return Console(stderr=True, highlight=False)


def json_text(value: Any) -> str:
    """One JSON object, as people read it."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def print_json(value: Any) -> None:
    """One JSON object on standard output, and nothing else."""
    click.echo(json_text(value))


def plain(value: Any) -> dict[str, Any]:
    """A Struct as the dictionary that its JSON would be."""
    result: dict[str, Any] = msgspec.to_builtins(value)
    return result


def page(html: str | None) -> Path | None:
    """The file that --html names. Raises UsageError, before anything is run, where it can't be written at the end."""
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
        raise UsageError(f"--html {html}: {problem}; name a file")
    return path
