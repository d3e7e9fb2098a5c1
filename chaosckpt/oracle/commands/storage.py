"""What lay on storage after each launch: steps that were complete, steps that a fault left torn, and steps of which nothing is sure.

A file that isn't what golden runs left need not be wrong: a launch may rightly write other bytes. So a step is called torn only
where a fault struck the launch that left it so, in this step's save, an earlier one or in retention, and where a golden run had the
same past.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from chaosckpt.model.checkpoints import UNSAVED
from chaosckpt.oracle.commands.launch import Launch
from chaosckpt.oracle.commands.view import CommandView

INEXACT = "inexact-resume"
"""The word for a violation that no fault is behind: to resume is enough."""


@dataclass(frozen=True)
class Lying:
    """Steps by what is known of them. `differing` has, for those that aren't whole, the first file that is not as expected."""

    whole: frozenset[int] = frozenset()
    torn: frozenset[int] = frozenset()
    unsure: frozenset[int] = frozenset()
    differing: tuple[tuple[int, str], ...] = ()

    @property
    def any(self) -> bool:
        """Whether anything of a checkpoint was there."""
        return bool(self.whole or self.torn or self.unsure)

    def wrong(self, step: int) -> str:
        """The first file of this step that is not as a golden run left it."""
        return dict(self.differing).get(step, "some file")


@dataclass(frozen=True)
class Misfit:
    """A step that a launch without any fault left, and that is not as any golden run left it: the golden runs don't tell enough."""

    attempt: int
    step: int
    wrong: str

    def __str__(self) -> str:
        return (
            f"attempt {self.attempt} saved step {self.step} undisturbed, and {self.wrong} is not as in any golden run: "
            "these don't tell what a complete checkpoint is, so that none was called incomplete"
        )


def before(view: CommandView, launch: Launch) -> Lying:
    """What lay on storage when this launch began."""
    return _all(view).get(launch.number, (Lying(), Lying()))[0]


def after(view: CommandView, launch: Launch) -> Lying:
    """What this launch left."""
    return _all(view).get(launch.number, (Lying(), Lying()))[1]


def to_resume_is_enough(view: CommandView, launch: Launch) -> str:
    """INEXACT where this launch resumed from a whole checkpoint, undisturbed, so that the place of no fault matters; else nothing."""
    whole = launch.chosen is not None and launch.chosen in before(view, launch).whole
    return INEXACT if whole and not launch.struck_in_recovery else ""


@functools.lru_cache(maxsize=64)
def misfit(view: CommandView) -> Misfit | None:
    """The first step that shows that the golden runs don't tell what a complete checkpoint is; None where nothing shows that."""
    for launch, differs in zip(view.launches, _may_differ(view), strict=True):
        if launch.after is None or differs:
            continue
        there = set(launch.before.event.complete + launch.before.event.partial) if launch.before is not None else set()
        for step in launch.after.event.partial:
            wrong = launch.after.event.differing.get(step, "some file")
            if (
                wrong != UNSAVED
                and step not in there
                and step > (launch.chosen or -1)
                and _was_left_alone(launch, step)
            ):
                return Misfit(launch.number, step, wrong)
    return None


def _was_left_alone(launch: Launch, step: int) -> bool:
    """Whether no fault can have struck this step's save: none struck at all, or one only after the save of a later step, too."""
    assert launch.after is not None
    if launch.undisturbed:
        return True
    if not launch.struck_saves or launch.struck_retention:
        return False
    seen = launch.after.event.complete + launch.after.event.partial
    return any(step < between < min(launch.struck_saves) for between in seen)


@functools.lru_cache(maxsize=64)
def _all(view: CommandView) -> dict[int, tuple[Lying, Lying]]:
    """By the number of each launch: what lay there before and after it."""
    found: dict[int, tuple[Lying, Lying]] = {}
    previous = Lying()
    fits = misfit(view) is None
    for launch, differs in zip(view.launches, _may_differ(view), strict=True):
        now = _after(launch, previous, trusted=fits and not differs)
        found[launch.number] = (previous, now)
        previous = now
    return found


def _after(launch: Launch, previous: Lying, *, trusted: bool) -> Lying:
    if launch.after is None:
        return previous
    seen = launch.after.event
    torn = set()
    first_struck = min(launch.struck_saves, default=None)
    for step in seen.partial:
        by_fault = first_struck is not None and (step >= first_struck or launch.struck_retention)
        known = seen.differing.get(step) != UNSAVED
        if known and (step in previous.torn or (trusted and by_fault and step not in previous.unsure)):
            torn.add(step)
    return Lying(
        whole=frozenset(seen.complete),
        torn=frozenset(torn),
        unsure=frozenset(seen.partial) - torn,
        differing=tuple(sorted(seen.differing.items())),
    )


def _may_differ(view: CommandView) -> list[bool]:
    """For each launch whether what it saved may rightly differ from what golden runs saved, because none had its past.

    Golden runs start anew with the first number of ranks, or resume with any from a checkpoint that such a run had saved.
    """
    found: list[bool] = []
    differs = False
    first = view.launches[0].world_size if view.launches else 0
    previous = first
    for launch in view.launches:
        seen = launch.before.event if launch.before is not None else None
        changed = launch.world_size != previous
        differs = (
            differs
            or (launch.chosen is not None and (seen is None or launch.chosen not in seen.complete + seen.spare))
            or (launch.chosen is None and launch.world_size != first)
            or (changed and previous != first)
            or bool(launch.struck_in_recovery)
            or view.damaged_before(launch)
        )
        found.append(differs)
        previous = launch.world_size
    return found
