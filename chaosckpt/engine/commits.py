"""Commit points: the first operation of a golden run after which the real recovery chooses a save."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from chaosckpt.engine.prefixes import Prefixes
from chaosckpt.model.census import GoldenRun, Label, Point


def find_commits(prefixes: Prefixes | None, saves: Sequence[int], run: GoldenRun) -> GoldenRun:
    """Find the commit point of each save, by running recovery on prefixes of the trace; the run with `commits` filled in.

    Without prefixes a save counts as committed at its last operation.
    """
    if prefixes is None:
        ends = {step: _last_of(run.points, step) for step in saves}
        return msgspec.structs.replace(run, commits={step: end for step, end in ends.items() if end is not None})
    places = prefixes.places_of(run.points)
    commits = {}
    from_end: int | None = None
    for step in saves:
        window = [index for index, point in enumerate(run.points) if point.label.step == step and index in places]
        window.sort(key=places.__getitem__)
        # Saves end alike, so the last one's place is tried first: two probes instead of six.
        guess = None if from_end is None else len(window) - from_end
        found = _search(prefixes, step, places, window, guess)
        if found is not None:
            commits[step] = window[found]
            from_end = len(window) - found
    return msgspec.structs.replace(run, commits=commits)


def _last_of(points: Sequence[Point], step: int) -> int | None:
    return max((index for index, point in enumerate(points) if point.label.step == step), default=None)


def _search(probe: Prefixes, step: int, places: dict[int, int], window: list[int], guess: int | None) -> int | None:
    """Where in `window` the operation stands after which recovery begins to choose `step`; None when not even the last does it."""
    low, high = 0, len(window) - 1
    if guess is not None and 0 < guess <= high:
        if probe.chooses(step, places[window[guess]]):
            if not probe.chooses(step, places[window[guess - 1]]):
                return guess
            high = guess - 1
        else:
            low = guess + 1
    if low > high or not probe.chooses(step, places[window[high]]):
        return None
    while low < high:
        middle = (low + high) // 2
        if probe.chooses(step, places[window[middle]]):
            high = middle
        else:
            low = middle + 1
    return low


def with_stages(run: GoldenRun) -> GoldenRun:
    """Name the commit's own operation `commit`, and what a save still does after it (unless the target says otherwise) `retire`."""
    named = list(run.points)
    for step, commit in run.commits.items():
        for index, point in enumerate(named):
            if point.label.step != step or point.label.stage not in ("persist", "commit"):
                continue
            if index == commit:
                named[index] = msgspec.structs.replace(point, label=Label("commit", step))
            elif index > commit and point.address.rank == named[commit].address.rank:
                named[index] = msgspec.structs.replace(point, label=Label("retire", step))
    return msgspec.structs.replace(run, points=tuple(named))
