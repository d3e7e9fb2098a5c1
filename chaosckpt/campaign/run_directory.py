"""Run directories: how the harness creates and marks one, and refuses a directory that isn't its own."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import msgspec

from chaosckpt.errors import UsageError
from chaosckpt.model import formats

MARK = ".chaosckpt-run"
"""The file by which the harness recognises its own directories. It never writes to, or deletes from, a used one without it."""
DEFAULT_PARENT = "chaosckpt-runs"


class RunMark(msgspec.Struct, frozen=True):
    """The content of the mark: the format of what the run directory holds, and the version that made it."""

    format: int
    chaosckpt: str = ""


class _Outline(msgspec.Struct, frozen=True):
    """As much of a mark as every version writes; format 1 had no number of this name."""

    format: int = 1


def create(wanted: str | Path | None, base: Path | None = None, *, resumable: bool = True) -> Path:
    """Make and mark a run directory: `wanted`, or the next free number below `chaosckpt-runs/` in `base` (default: here).

    Raises UsageError, with nothing touched, for a directory that holds anything, be it a run. `resumable` says whether the command
    that asks can continue one.
    """
    if wanted is None:
        return _numbered((base or Path.cwd()) / DEFAULT_PARENT)
    path = Path(wanted).expanduser().absolute()
    _refuse_foreign(path, resumable)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the run directory {path} can't be created: {error.strerror}; choose another --run-dir"
        ) from error
    _mark(path)
    return path


def existing(path: str | Path) -> Path:
    """The absolute path of an existing run. Raises UsageError for anything else."""
    found = Path(path).expanduser().absolute()
    if not found.is_dir():
        raise UsageError(
            f"there is no run directory {found}; `ls {DEFAULT_PARENT}` lists the runs of the current directory"
        )
    if not is_marked(found):
        raise UsageError(
            f"{found} is not a run directory of chaosckpt: it has no {MARK} file; name the directory of a run"
        )
    _refuse_other_format(found)
    return found


def _refuse_other_format(run: Path) -> None:
    try:
        made = formats.read_json((run / MARK).read_bytes(), _Outline).format
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{run / MARK} cannot be read: {error}; start a new run") from error
    if made != formats.RUN:
        next_step = "start a new run, or use the version that made this one"
        raise UsageError(formats.refusal(f"the run {run}", made, formats.RUN, next_step))


def is_marked(path: Path) -> bool:
    """Whether the harness made this directory."""
    return (path / MARK).is_file()


def _refuse_foreign(path: Path, resumable: bool) -> None:
    if path.exists() and not path.is_dir():
        raise UsageError(f"the run directory {path} is a file; choose another --run-dir")
    if is_marked(path):
        step = f"continue it with --resume {path}, or choose" if resumable else "choose"
        raise UsageError(f"{path} already holds a run; {step} another --run-dir")
    enclosing = next((parent for parent in path.parents if is_marked(parent)), None)
    if enclosing is not None:
        raise UsageError(f"{path} lies inside the run {enclosing}; choose a --run-dir outside of it")
    try:
        occupied = path.is_dir() and any(path.iterdir())
    except OSError as error:
        raise UsageError(
            f"the run directory {path} can't be read: {error.strerror}; choose another --run-dir"
        ) from error
    if occupied:
        raise UsageError(
            f"{path} is not empty, and not a run directory of chaosckpt; nothing in it was touched: choose a new or empty --run-dir"
        )


def _numbered(parent: Path) -> Path:
    """The directory with the next free number. mkdir decides between two runs that start at once."""
    try:
        parent.mkdir(exist_ok=True)
        number = max((int(child.name) for child in parent.iterdir() if child.name.isdecimal()), default=0) + 1
        while True:
            path = parent / f"{number:03d}"
            try:
                path.mkdir()
            except FileExistsError:
                number += 1
                continue
            _mark(path)
            return path
    except OSError as error:
        raise UsageError(
            f"no run directory can be created in {parent}: {error.strerror}; choose one with --run-dir"
        ) from error


def _mark(path: Path) -> None:
    content = msgspec.json.encode(RunMark(formats.RUN, version("chaosckpt"))) + b"\n"
    try:
        descriptor = os.open(path / MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError as error:
        raise UsageError(f"another run has just started in {path}; choose another --run-dir") from error
    except OSError as error:
        raise UsageError(
            f"the run directory {path} is not writable: {error.strerror}; choose another --run-dir"
        ) from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
