"""Which file system a path lies on, as /proc/self/mountinfo tells it, and what is documented of that kind."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from chaosckpt.measure.documented import documented
from chaosckpt.model.measurement import FileSystem

MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """One line of mountinfo. `root` is the directory of the file system that is mounted; not `/` for a bind mount or a subvolume."""

    number: int
    parent: int
    root: str
    point: str
    options: tuple[str, ...]
    kind: str
    source: str

    def holds(self, path: str) -> bool:
        """Whether an absolute path lies at the mount point or below it."""
        return self.point == "/" or path == self.point or path.startswith(f"{self.point}/")


def parse(text: str) -> tuple[Mount, ...]:
    """The mounts of a mountinfo file (proc_pid_mountinfo(5)), in its order, which is that of mounting; other lines are passed over."""
    return tuple(mount for line in text.splitlines() if (mount := _mount(line)) is not None)


def mount_of(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that an absolute path without symbolic links lies on, found as the kernel does; None where none holds it.

    One walks down the path and steps into each mount that is met. So a mount on top hides what was mounted below it before.
    """
    every = [mount for mount in mounts if mount.holds(path)]
    numbers = {mount.number for mount in every}
    # The last of equals is on top.
    roots = [mount for mount in every if mount.parent not in numbers or mount.parent == mount.number]
    current = min(reversed(roots), key=lambda mount: len(mount.point), default=None)
    while current is not None:
        children = [mount for mount in every if mount.parent == current.number and mount.number != current.number]
        inner = min(reversed(children), key=lambda mount: len(mount.point), default=None)
        if inner is None:
            return current
        current = inner
    return None


def describe(tier: str, path: str | Path, mounts: Iterable[Mount]) -> FileSystem:
    """The file system of a tier's directory, which need not exist yet; symbolic links are followed."""
    real = os.path.realpath(path)
    found = mount_of(real, mounts)
    if found is None:
        text, source = documented("", "")
        return FileSystem(
            tier=tier, path=str(path), kind="unknown", mount_options="", device="", documented=text, source=source
        )
    options = ",".join(found.options)
    text, source = documented(found.kind, options)
    return FileSystem(
        tier=tier,
        path=str(path),
        kind=found.kind,
        mount_options=options,
        device=found.source,
        mount_point=found.point,
        root=found.root,
        documented=text,
        source=source,
    )


def file_systems(tiers: Iterable[tuple[str, str | Path]]) -> tuple[FileSystem, ...]:
    """The file systems of several tiers, each given with its directory, by this process's own mounts."""
    try:
        mounts = parse(MOUNTS.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError:
        mounts = ()  # A sandbox may hide /proc: then every kind is unknown, and said to be so.
    return tuple(describe(tier, path, mounts) for tier, path in tiers)


def _mount(line: str) -> Mount | None:
    """`36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/sda1 rw`; a source may be empty."""
    before, dash, after = line.partition(" - ")
    left, right = before.split(" "), after.split(" ")
    if not dash or len(left) < 6 or len(right) < 3 or not (left[0].isdigit() and left[1].isdigit()):
        return None
    own, shared = left[5].split(","), right[2].split(",")
    return Mount(
        number=int(left[0]),
        parent=int(left[1]),
        root=_plain(left[3]),
        point=_plain(left[4]),
        options=tuple(dict.fromkeys(_plain(option) for option in (*own, *_beside(own, shared)))),
        kind=right[0],
        source=_plain(right[1]),
    )


def _beside(own: list[str], shared: list[str]) -> list[str]:
    """The file system's options beside the mount's: a mount that is read-only of one that is not stays read-only."""
    return [option for option in shared if not (option == "rw" and "ro" in own)]


def _plain(text: str) -> str:
    """Space, tab, newline, backslash and `#` are written as octal numbers."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)
