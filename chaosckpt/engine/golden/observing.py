"""What the golden runs of a command show to an observer: where each save stands, and in what plain restarts differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from chaosckpt.commands.trajectories import Difference, Positions, difference, learn, steady, trajectory
from chaosckpt.engine.golden.command_run import Run
from chaosckpt.model.observed import PARTS, ObservedStep
from chaosckpt.model.summary import Restarts, TrainingSeen

_UNSEEN = {
    "averages": "no weights live that no optimizer holds",
    "buffers": "no module has buffers",
    "data": "no module in training mode was given a tensor",
}


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What is known by observation. `observer` is empty where nothing was seen; `unjudged` are parts that aren't compared, and why."""

    observer: str = ""
    positions: Positions = Positions()
    restarts: int = 0
    """Plain restarts that trained on, each from another save."""
    differing: tuple[Difference, ...] = ()
    """The first difference of each of those that differ from the uninterrupted run."""
    unjudged: dict[str, str] = {}
    why: str = ""
    """Why no step can be told from what was seen; empty where it can be."""

    def summary(self) -> TrainingSeen:
        """What a campaign tells of it."""
        return TrainingSeen(
            observer=self.observer or None,
            restarts=Restarts(
                tried=self.restarts,
                differing=len(self.differing),
                parts=tuple(dict.fromkeys(one.part for one in self.differing)),
            ),
            unjudged={"all": self.why} if self.why else self.unjudged,
        )

    def sentences(self) -> list[str]:
        """One for each part in which plain restarts differ."""
        by_part: dict[str, list[Difference]] = {}
        for one in self.differing:
            by_part.setdefault(one.part, []).append(one)
        return [f"{first}{_as_after(others)}" for first, *others in by_part.values()]


def _as_after(others: Sequence[Difference]) -> str:
    return f" (and so after those from {', '.join(f'step {one.after}' for one in others)})" if others else ""


def observed(uninterrupted: Sequence[Run], restarts: Mapping[int, Run]) -> Observed:
    """What is known by these runs: several from the start, the last of which was launched as trials are, and one from each save."""
    seen = [run.observed for run in uninterrupted]
    if not seen[-1]:
        return Observed(why="no step of a torch optimizer was seen")
    runs = [trajectory(steps) for steps in seen if steps]
    again = {step: trajectory(run.observed) for step, run in restarts.items() if run.outcome == "finished"}
    learned = learn(runs[-1], again)
    parts, unjudged = steady(runs), _unjudged(seen[-1], steady(runs))
    if isinstance(learned, str):
        return Observed(observer="torch", why=learned, unjudged=unjudged)
    places = {step: place for place, step in learned.steps.items()}
    found = {step: difference(runs[-1], again[step], step, place, parts) for step, place in sorted(places.items())}
    return Observed(
        observer="torch",
        positions=learned,
        restarts=len(places),
        differing=tuple(one for one in found.values() if one is not None),
        unjudged=unjudged,
    )


def _unjudged(steps: Sequence[ObservedStep], judged: frozenset[str]) -> dict[str, str]:
    there = {part for step in steps for part in step.before}
    return {
        part: "it differs between uninterrupted runs" if part in there else _UNSEEN.get(part, "it was not seen")
        for part in PARTS
        if part not in judged
    }
