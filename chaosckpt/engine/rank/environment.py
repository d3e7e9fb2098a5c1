"""The environment of a rank: what it finds around itself when it begins: its process, its environment, its versions, its filters."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from chaosckpt.engine.wire import versions
from chaosckpt.engine.wire.orders import Place
from chaosckpt.engine.wire.process_tree import started
from chaosckpt.engine.wire.reports import RankEnvironment

_FILTERS = "Seccomp_filters:"


def look_around(place: Place) -> RankEnvironment:
    """What this process sees now. Changes nothing; reads /proc, the tiers' directories and what is installed."""
    return RankEnvironment(
        rank=place.rank,
        pid=os.getpid(),
        began=started(os.getpid()),
        argv=tuple(_words("/proc/self/cmdline")),
        executable=sys.executable,
        environment=tuple(sorted(word.partition("=")[0] for word in _words("/proc/self/environ"))),
        temporary=tempfile.gettempdir(),
        local_files=_files(place.tiers["local"]),
        filters=filters("self"),
        versions=versions.of_all_installed(),
    )


def filters(process: int | str) -> int:
    """How many seccomp filters are in force for a process; -1 where the kernel (before 5.9) doesn't tell."""
    with open(f"/proc/{process}/status") as stream:
        found = next((line for line in stream if line.startswith(_FILTERS)), None)
    return -1 if found is None else int(found.removeprefix(_FILTERS))


def _words(path: str) -> list[str]:
    with open(path, "rb") as stream:
        return [os.fsdecode(word) for word in stream.read().split(b"\0") if word]


def _files(directory: str) -> tuple[str, ...]:
    return tuple(sorted(str(path.relative_to(directory)) for path in Path(directory).rglob("*") if path.is_file()))
