"""What an interrupted save of another, longer run left lies on shared storage: directories and empty files with a much
higher step number.

What it destroys: nothing. What takes the highest number to be the newest checkpoint is misled.
Survived by: everything must; no guarantee is needed: a save that was cut off before its commit is no checkpoint, whoever made it.
How it heals: it lies there until the target removes it.
Evidence: the names that were made. Where all of them were there already, the fault is not injected.

It is a crash state that the target itself can leave: for each rank the directories of a save of the golden run and the
first file in them, empty, from before the commit, with another step number in their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import msgspec
from hypothesis import strategies as st

from chaosckpt.faults.context import FaultContext
from chaosckpt.model.census import GoldenRun, Point
from chaosckpt.model.fault import Fault, JobControl
from chaosckpt.model.mutation import Plant
from chaosckpt.model.phrasing import describe_path

HIGHER = 1_000_000
"""Added to the step: more than any job of the harness trains."""


class StaleSave(Fault, frozen=True, tag="stale-save"):
    """Make these directories and empty files on shared storage, before the attempt starts."""

    between: ClassVar[bool] = True
    weight: ClassVar[float] = 0.5

    directories: tuple[str, ...]
    files: tuple[str, ...] = ()

    def prepare(self, job: JobControl) -> str | None:
        return job.mutate("shared", None, Plant(self.directories, self.files))

    def simpler(self) -> Iterable[StaleSave]:
        if self.files:
            yield msgspec.structs.replace(self, files=())

    def describe(self) -> str:
        planted = ", ".join(describe_path(path) for path in (*self.directories, *self.files))
        return f"remains of an interrupted save of a longer run put on shared storage: {planted}"

    @classmethod
    def strategy(cls, context: FaultContext) -> st.SearchStrategy[StaleSave] | None:
        """One of the saves of the main run, by all of its ranks; before the first launch, too. Each lies there once."""
        earlier = {fault for plan in context.history for fault in plan.faults}
        found = [fault for fault in dict.fromkeys(_stale(context.census.main)) if fault not in earlier]
        return st.sampled_from(found) if found else None


def _stale(run: GoldenRun) -> Iterator[StaleSave]:
    for step, commit in sorted(run.commits.items()):
        before = [point for point in run.points[:commit] if point.label.step == step]
        directories: list[str] = []
        files: list[str] = []
        for rank in range(run.topology.world_size):
            made, first = _begun([point for point in before if point.address.rank == rank])
            directories += made
            files += [first] if first and first != run.points[commit].address.path else []
        folders = tuple(sorted({name for path in directories if (name := _renumbered(path, step))}))
        if folders:
            named = {name for path in files if (name := _renumbered(path, step))}
            yield StaleSave(folders, tuple(sorted(named)))


def _begun(points: Sequence[Point]) -> tuple[list[str], str | None]:
    """The directories that a rank makes before its first file, and that file."""
    directories: list[str] = []
    for address in (point.address for point in points):
        if address.op == "open_write":
            return directories, address.path
        if address.op == "mkdir":
            directories.append(address.path)
    return directories, None


def _renumbered(path: str, step: int) -> str | None:
    """The path under another step; None where it doesn't plainly contain its step, is random, or isn't shared."""
    if not path.startswith("shared:") or "*" in path:
        return None
    numbers = [found for found in re.finditer(r"\d+", path) if int(found[0]) == step]
    if len(numbers) != 1:
        return None
    (found,) = numbers
    return path[: found.start()] + str(step + HIGHER).zfill(len(found[0])) + path[found.end() :]
