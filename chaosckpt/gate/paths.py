"""Where a path of a process leads: through its directories, symbolic links and /proc, to a canonical path.

The kernel walks the parents (one open with O_PATH); the last component and the magic links of /proc need care here.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from chaosckpt.gate import syscalls as k
from chaosckpt.gate.descriptors import Description, Descriptors, below
from chaosckpt.gate.processes import Process
from chaosckpt.model.file_names import text_of

_MOST_LINKS = 40
_SLASHES = re.compile(rb"/(?:\./|/)+")
_DESCRIPTOR_FOLDER = re.compile(rb"/proc/(\d+)(?:/task/\d+)?/fd")


class Root(msgspec.Struct, frozen=True):
    """A tracked storage root: paths under the directory `path` are addressed `tier:relative`."""

    tier: str
    path: str


class ResolvedPath(NamedTuple):
    """A resolved path: `reach` is how the supervisor gets there, `raw` is `tier:relative`, or None outside every root.

    `description` is set where the path leads to an open file by way of /proc/PID/fd, even if it has no name any more.
    """

    path: bytes
    reach: bytes
    raw: str | None
    description: Description | None = None


class Resolver:
    """Knows the roots, by their canonical paths."""

    def __init__(self, roots: Sequence[Root], descriptors: Descriptors) -> None:
        places = [(os.fsencode(os.path.realpath(root.path)), root.tier) for root in roots]
        self.roots = sorted(places, key=lambda place: -len(place[0]))
        self._descriptors = descriptors
        self._own = b"/proc/%d" % os.getpid()

    def raw(self, path: bytes) -> str | None:
        """`tier:relative` of a canonical path (the root itself is `tier:.`), or None outside every root."""
        for root, tier in self.roots:
            if below(path, root):
                return f"{tier}:{text_of(path[len(root) + 1 :]) or '.'}"
        return None

    def outside(self, path: bytes) -> str:
        return self.raw(path) or text_of(path)

    def place(
        self, process: Process, tid: int, directory: int, text: bytes, *, follow: bool, entry: bool = False
    ) -> ResolvedPath:
        """Where `text` leads, relative to descriptor `directory` or AT_FDCWD. Needs nothing to be there.

        `follow` says whether a symbolic link as the last component is followed. A slash behind it has it followed too,
        except where the call is about the directory `entry` itself. Raises OSError(ENOENT) for an empty path.
        """
        if not text:
            raise OSError(errno.ENOENT, "empty path")
        path = self._absolute(process, tid, directory, text)
        for _ in range(_MOST_LINKS):
            bare = path.rstrip(b"/")
            slash = b"/" if len(bare) < len(path) else b""
            head, _, tail = bare.rpartition(b"/")
            if tail in (b"", b".", b".."):
                # The kernel refuses to rename or remove by such a name: it must see the name itself.
                return self._found(self._canonical(bare or b"/", process, tid), bare or b"/")
            parent = self._canonical(head or b"/", process, tid)
            whole = (b"" if parent == b"/" else parent) + b"/" + tail
            if not (follow or slash) or (entry and not follow):
                return self._found(whole, whole + slash)
            held = self._held(parent, tail)
            if held is not None:
                return self.of(held)
            try:
                target = os.readlink(whole)
            except OSError:
                return self._found(whole, whole + slash)
            path = (target if target.startswith(b"/") else parent + b"/" + target) + slash
        return self._found(whole, whole + slash)

    def of(self, held: Description) -> ResolvedPath:
        """An open file as a place, which it is even when it has no name any more."""
        inside = None if held.raw.startswith("/") else held.raw
        return ResolvedPath(held.path, b"/proc/self/fd/%d" % held.descriptor, inside, held)

    def _found(self, path: bytes, reach: bytes) -> ResolvedPath:
        return ResolvedPath(path, reach, self.raw(path))

    def _absolute(self, process: Process, tid: int, directory: int, text: bytes) -> bytes:
        if not text.startswith(b"/"):
            start = b"cwd" if directory == k.AT_FDCWD else b"fd/%d" % directory
            return b"/proc/%d/task/%d/%s/%s" % (process.pid, tid, start, text)
        text = _SLASHES.sub(b"/", text)
        for name, meaning in (
            (b"/proc/self/", b"/proc/%d/" % process.pid),
            (b"/proc/thread-self/", b"/proc/%d/task/%d/" % (process.pid, tid)),
            (b"/dev/fd/", b"/proc/%d/fd/" % process.pid),
        ):
            if text.startswith(name):
                return meaning + text[len(name) :]
        return text

    def _canonical(self, path: bytes, process: Process, tid: int) -> bytes:
        """A directory's path without links; where the way is broken, what can be resolved of it and then the rest."""
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            head, _, tail = path.rstrip(b"/").rpartition(b"/")
            if not tail:
                return b"/"
            return os.path.normpath(self._canonical(head or b"/", process, tid).rstrip(b"/") + b"/" + tail)
        try:
            found = os.readlink(b"/proc/self/fd/%d" % descriptor)
        finally:
            os.close(descriptor)
        if below(found, self._own):  # It went through a link to /proc/self, which is us, and means the caller.
            return b"/proc/%d" % process.pid + found[len(self._own) :]
        return found

    def _held(self, parent: bytes, tail: bytes) -> Description | None:
        """The tracked description behind /proc/PID/fd/NUMBER."""
        folder = _DESCRIPTOR_FOLDER.fullmatch(parent)
        if folder is None or not tail.isdigit():
            return None
        process = self._descriptors.process(int(folder[1]))
        return None if process is None else self._descriptors.find(process, int(tail))
