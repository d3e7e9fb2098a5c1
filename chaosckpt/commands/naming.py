"""A command's checkpoints by their names: which step a path belongs to, and what makes a step's files complete."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from chaosckpt.model.scenario import OUT

StepFiles = Mapping[int, Mapping[str, tuple[int, str]]]
"""step -> path -> (bytes, digest)"""
FileSeen = tuple[str, int, str]
"""(`tier:path`, bytes, digest of the content)."""
UNSAVED = "no golden run saved this step"
"""What keeps a step from being complete of which nothing is known, such as one that was saved on a signal."""
ROLLING = 0
"""What stands for the step of a path that tells none, because every save has the same names."""
_NUMBER = re.compile(r"\d+")
_EXTENSION = re.compile(r"\.[A-Za-z]\w*$")
_CALLED = re.compile(r"ckpt|checkpoint|step|epoch|iter|state|save|last|latest|resume", re.IGNORECASE)
_OTHER = re.compile(r"events|tfevents|\.log|\.csv|tmp|rank[-_]?\*[^/]*$", re.IGNORECASE)
"""Numbered files that are no checkpoints: logs, events, and what differs by the rank only."""
_DECORATED = r"(?:\.|[^/]*?(?:te?mp|partial|incomplete|staging)[^/]*?)?"
"""What the temporary name of an entry begins with, before what its final name begins with."""


class Naming:
    """Reads the user's glob, whose last `*` stands for the step.

    A glob without `*` names one *rolling* checkpoint, which every save replaces: no path tells its step. Raises ValueError for a
    glob that isn't below `{out}`.
    """

    def __init__(self, glob: str) -> None:
        if not glob.startswith(OUT + "/") or glob.endswith("/"):
            raise ValueError(f"{glob!r} must begin with {OUT}/, the directory that the harness gives to the command")
        head, star, tail = glob.rpartition("*")
        self.rolling = not star
        if self.rolling:
            tail = _EXTENSION.search(glob)[0] if _EXTENSION.search(glob) else ""  # type: ignore[index]
            head = glob.removesuffix(tail)
        directory, slash, begins = head[len(OUT) + 1 :].rpartition("/")
        above, step = (
            "out:" + _translated(directory + slash),
            r"(?P<step>)(?![A-Za-z0-9])" if self.rolling else r"(?P<step>\d+)",
        )
        self.pattern = above + (_DECORATED if begins else r"\.?") + _translated(begins) + step
        """A regular expression for what belongs to a step: its entry, what lies below it, markers beside it that begin like it, and
        temporary names. The group `step` is empty for a rolling checkpoint."""
        self._belongs = re.compile(self.pattern)
        self._entry = re.compile(above + _translated(begins) + step + _translated(tail) + r"(?:/|$)")

    def belongs(self, path: str | None) -> int | None:
        """The step that an operation on this path is about, ROLLING for a rolling checkpoint's; None for any other path."""
        return _step(self._belongs.match(path)) if path is not None else None

    def entry(self, path: str) -> int | None:
        """The step whose checkpoint this file is, or is part of, by its final name; ROLLING for a rolling checkpoint's."""
        return _step(self._entry.match(path))

    def below(self, path: str) -> str:
        """What this file is called below its entry, with a / before; empty where it is the entry itself."""
        found = self._entry.match(path)
        return path[found.end() - path[: found.end()].endswith("/") :] if found is not None else ""

    def whole(self, path: str | None) -> int | None:
        """The step whose entry itself has this path, and not only a part of it."""
        found = self._entry.match(path) if path is not None else None
        return (
            _step(found)
            if found is not None and found.end() == len(path or "") and not found[0].endswith("/")
            else None
        )


def _translated(glob: str) -> str:
    parts = {"*": "[^/]*", "?": "[^/]"}
    return "".join(parts.get(letter) or re.escape(letter) for letter in glob.replace("**", "*"))


def _step(found: re.Match[str] | None) -> int | None:
    return None if found is None else int(found.group("step") or ROLLING)


def by_step(files: Iterable[FileSeen], naming: Naming) -> dict[int, dict[str, tuple[int, str]]]:
    """The files of each step's checkpoint: path -> (bytes, digest)."""
    found: dict[int, dict[str, tuple[int, str]]] = {}
    for path, size, digest in files:
        step = naming.entry(path)
        if step is not None:
            found.setdefault(step, {})[path] = (size, digest)
    return found


def kind_of(path: str) -> str:
    """The path with every number read as #: files of one kind are alike in all steps."""
    return _NUMBER.sub("#", path)


def guessed(paths: Iterable[str]) -> str | None:
    """The glob that a run's own file names suggest: entries that differ in a number, best those that are called like a checkpoint.

    Of several the one nearest to `{out}` is taken, then the one with the most numbers. None where no two entries below `{out}`
    differ in a number only.
    """
    entries: dict[str, set[str]] = {}
    for path in paths:
        parts = path.removeprefix("out:").split("/")
        for depth, part in enumerate(parts):
            numbers = list(_NUMBER.finditer(_EXTENSION.sub("", part)))
            if numbers:
                last = numbers[-1]
                above = [_NUMBER.sub("*", directory) for directory in parts[:depth]]
                shape = "/".join([*above, _NUMBER.sub("*", part[: last.start()]) + "*" + part[last.end() :]])
                entries.setdefault(shape, set()).add(last[0])
    likely = [
        (_CALLED.search(shape) is not None, -shape.count("/"), len(numbers), shape)
        for shape, numbers in entries.items()
        if len(numbers) > 1 and not _OTHER.search(shape)
    ]
    return f"{OUT}/{max(likely)[-1]}" if likely else None


def guessed_rolling(made: Mapping[str, int], left: Iterable[str]) -> str | None:
    """The glob of a checkpoint that always has the same name; None without any.

    `made` has how often each path was made anew, `left` the files that are there at the end.

    Best is what is called like a checkpoint, then what was made most often. Several such files of one directory are one checkpoint, the
    directory.
    """
    there = {"/".join(file.split("/")[:depth]) for file in left for depth in range(1, file.count("/") + 2)}
    likely = [
        (_CALLED.search(path) is not None, times, -path.count("/"), path)
        for path, times in made.items()
        if not _OTHER.search(path) and path in there
    ]
    if not likely:
        return None
    best = max(likely)
    path = best[-1].removeprefix("out:")
    above = path.rpartition("/")[0]
    beside = [
        other
        for _, times, _, other in likely
        if times == best[1] and other.removeprefix("out:").rpartition("/")[0] == above
    ]
    return f"{OUT}/{above if above and len(beside) > 1 else path}"
