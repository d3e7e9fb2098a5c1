"""Trajectories: what an observer saw of uninterrupted runs and of plain restarts, and what a restart's first steps tell by them. Pure.

The first steps of a restart are looked up among those of the uninterrupted run. Where its parameters are those of exactly one of them,
the job trains on from there, whatever it prints. What doesn't fit (parameters that come twice, restarts that seem to begin at one
place, as where a script makes a step before it loads) leaves the matter unknown, and never makes a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from chaosckpt.model.observed import GENERATORS, ObservedStep

HORIZON = 3
"""The first effective steps of a restart that are compared: what a scheduler or an optimizer lacks shows in the second."""
BEGINNING = -1
"""Stands for the save that a run from the beginning trains on from: some scripts number theirs from 0."""
_STATE = ("data", "optimizer", "scheduler", "buffers", "averages")
"""Parts that can be compared as they are, the one that the others may follow from first."""
Trajectory = Mapping[int, Sequence[ObservedStep]]
"""The effective steps of each rank, in order."""


class Positions(msgspec.Struct, frozen=True):
    """Where each save stands among the steps of the uninterrupted run: `steps` maps the number of steps done before it to its number.

    `parameters` are, for each rank, the digests with which these steps begin.
    """

    parameters: dict[int, tuple[str, ...]] = {}
    steps: dict[int, int] = {}

    def resumed(self, seen: Iterable[ObservedStep]) -> dict[int, int | None]:
        """The save that each rank trained on from, by rank, for those that trained: BEGINNING, or None where that isn't known."""
        found: dict[int, int | None] = {}
        for rank, steps in trajectory(seen).items():
            place = _place(self.parameters.get(rank, ()), steps[0])
            found[rank] = BEGINNING if place == 0 else self.steps.get(place) if place is not None else None
        return found


class Difference(msgspec.Struct, frozen=True):
    """How a plain restart differs from the uninterrupted run. `after` is the save, `nth` counts the steps since, from 0.

    `other` is how many steps the uninterrupted run had done when it had the same, where that is one place.
    """

    after: int
    rank: int
    part: str
    nth: int
    place: int
    other: int | None = None

    def __str__(self) -> str:
        what = _WORDS.get(self.part, self.part)
        which = f"other {what} than" if self.other is None else f"the {what} of training step {self.other + 1} of"
        return (
            f"after a plain restart from step {self.after}, without any fault, rank {self.rank} makes training step {self.step} with "
            f"{which} the uninterrupted run"
        )

    @property
    def step(self) -> int:
        """The training step that differs, counted from 1."""
        return self.place + self.nth + 1


_WORDS = {
    "data": "data",
    "optimizer": "optimizer state",
    "scheduler": "learning rates or other settings of the optimizer",
    "rng": "random numbers",
    "averages": "averaged or frozen weights",
}


def trajectory(seen: Iterable[ObservedStep]) -> dict[int, list[ObservedStep]]:
    """The effective steps of each rank that has any."""
    found: dict[int, list[ObservedStep]] = {}
    for step in seen:
        if step.effective and step.before.get("parameters"):
            found.setdefault(step.rank, []).append(step)
    return found


def learn(uninterrupted: Trajectory, restarts: Mapping[int, Trajectory]) -> Positions | str:
    """The positions of the saves from which restarts were made, by their steps; else why nothing is known, as the end of a sentence."""
    if not uninterrupted:
        return "no step of a torch optimizer was seen"
    parameters = {rank: tuple(step.before["parameters"] for step in steps) for rank, steps in uninterrupted.items()}
    steps: dict[int, int] = {}
    for step, seen in sorted(restarts.items()):
        if not seen:
            continue  # nothing was left to be done
        places = {_place(parameters.get(rank, ()), rows[0]) for rank, rows in seen.items()}
        place = places.pop() if len(places) == 1 else None
        if place is None or seen.keys() != uninterrupted.keys():
            return f"the first step after a plain restart from step {step} has the parameters of no step of the uninterrupted run"
        if place <= max(steps, default=0):
            return (
                f"a plain restart from step {step} seems to begin with training step {place + 1}, as another one does"
            )
        steps[place] = step
    return Positions(parameters, steps) if steps else "no plain restart trained on"


def steady(runs: Sequence[Trajectory]) -> frozenset[str]:
    """The parts that are the same in all these uninterrupted runs wherever they were seen."""
    parts = {part for run in runs for steps in run.values() for step in steps for part in step.before}
    first, *others = runs
    unsteady = {
        part
        for other in others
        for rank, steps in first.items()
        for one, two in zip(steps, other.get(rank, ()), strict=False)
        for part in parts
        if one.before.get(part) != two.before.get(part)
    }
    return frozenset(parts - unsteady)


def difference(
    uninterrupted: Trajectory, restart: Trajectory, after: int, place: int, judged: frozenset[str]
) -> Difference | None:
    """The first part in which a plain restart at this place differs from the uninterrupted run; None where in nothing that is judged.

    Gradients that differ alone are a matter of numerics: DDP adds in another order before its first step than after it.
    """
    for rank, rows in sorted(restart.items()):
        golden = uninterrupted.get(rank, ())
        for nth, (row, expected) in enumerate(zip(rows[:HORIZON], golden[place:], strict=False)):
            differing = {part for part in judged if _differ(row, expected, part)}
            part = next((part for part in _STATE if part in differing), "")
            if part == "scheduler" and not row.before.get("optimizer") and expected.before.get("optimizer"):
                part = "optimizer"  # that has no state yet, and the settings that it was made with
            if not part and "gradients" in differing and differing & {*GENERATORS}:
                part = "rng"
            if not part and nth and "parameters" in differing:
                part = "optimizer"  # with the same gradients the step before did something else
            if part:
                alike = [at for at, step in enumerate(golden) if not _differ(row, step, part, unknown=True)]
                other = _only(alike) if part in differing else None
                return Difference(after, rank, part, nth, place, other)
            if differing & {"gradients", "parameters"}:
                break
    return None


def _differ(one: ObservedStep, other: ObservedStep, part: str, *, unknown: bool = False) -> bool:
    """Whether a part is known of both and not the same; `unknown` is what counts where it isn't known."""
    mine, theirs = one.before.get(part), other.before.get(part)
    if not mine or not theirs or _number(mine) != _number(theirs):
        return unknown
    if part == "data":
        # A step that a gradient scaler skips leaves its batch to the next one: the last batches are this step's own.
        ours, others = mine.split(), theirs.split()
        return any(one != other for one, other in zip(reversed(ours), reversed(others), strict=False))
    return mine != theirs


def _number(digest: str) -> str:
    """How many things a digest is made of, where it says so."""
    return digest.partition(":")[0] if ":" in digest else ""


def _place(parameters: Sequence[str], step: ObservedStep) -> int | None:
    return _only([at for at, digest in enumerate(parameters) if digest == step.before["parameters"]])


def _only(places: Sequence[int]) -> int | None:
    return places[0] if len(places) == 1 else None
