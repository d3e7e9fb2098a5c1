"""What lay on storage after each attempt: steps that were complete, steps that a fault left torn, and steps of which nothing is sure.

A file that isn't what golden runs left need not be wrong: an attempt may rightly write other bytes. So a step is called torn only
where a fault struck the attempt that left it so, in this step's save, an earlier one or in retention, and where a golden run had the
same past.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from chaosckpt.commands.naming import UNSAVED
from chaosckpt.oracle.blame import INEXACT
from chaosckpt.oracle.facts.command import CommandAttempt, CommandView


@dataclass(frozen=True)
class StoredSteps:
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
class UnmodelledStep:
    """A step that an attempt without any fault left, and that is not as any golden run left it: the golden runs don't tell enough."""

    attempt: int
    step: int
    wrong: str

    def __str__(self) -> str:
        return (
            f"attempt {self.attempt} saved step {self.step} without any fault, but its file {self.wrong} is not as any golden run "
            "left it: the golden runs do not show what a complete checkpoint is, so no checkpoint was judged incomplete"
        )


def before(view: CommandView, attempt: CommandAttempt) -> StoredSteps:
    """What lay on storage when this attempt began."""
    return _all(view).get(attempt.number, (StoredSteps(), StoredSteps()))[0]


def after(view: CommandView, attempt: CommandAttempt) -> StoredSteps:
    """What this attempt left."""
    return _all(view).get(attempt.number, (StoredSteps(), StoredSteps()))[1]


def to_resume_is_enough(view: CommandView, attempt: CommandAttempt) -> str:
    """INEXACT where this attempt resumed from a whole checkpoint, undisturbed, so that the place of no fault matters; else nothing."""
    whole = attempt.chosen is not None and attempt.chosen in before(view, attempt).whole
    return INEXACT if whole and not attempt.struck_in_recovery else ""


@functools.lru_cache(maxsize=64)
def misfit(view: CommandView) -> UnmodelledStep | None:
    """The first step that shows that the golden runs don't tell what a complete checkpoint is; None where nothing shows that."""
    for attempt, differs in zip(view.attempts, _may_differ(view), strict=True):
        if attempt.after is None or differs:
            continue
        there = (
            set(attempt.before.event.complete + attempt.before.event.partial) if attempt.before is not None else set()
        )
        for step in attempt.after.event.partial:
            wrong = attempt.after.event.differing.get(step, "some file")
            if (
                wrong != UNSAVED
                and step not in there
                and step > (attempt.chosen or -1)
                and _was_left_alone(attempt, step)
            ):
                return UnmodelledStep(attempt.number, step, wrong)
    return None


def _was_left_alone(attempt: CommandAttempt, step: int) -> bool:
    """Whether no fault can have struck this step's save: none struck at all, or one only after the save of a later step, too."""
    assert attempt.after is not None
    if attempt.undisturbed:
        return True
    if not attempt.struck_saves or attempt.struck_retention:
        return False
    seen = attempt.after.event.complete + attempt.after.event.partial
    return any(step < between < min(attempt.struck_saves) for between in seen)


@functools.lru_cache(maxsize=64)
def _all(view: CommandView) -> dict[int, tuple[StoredSteps, StoredSteps]]:
    """By the number of each attempt: what lay there before and after it."""
    found: dict[int, tuple[StoredSteps, StoredSteps]] = {}
    previous = StoredSteps()
    fits = misfit(view) is None
    for attempt, differs in zip(view.attempts, _may_differ(view), strict=True):
        now = _after(attempt, previous, trusted=fits and not differs)
        found[attempt.number] = (previous, now)
        previous = now
    return found


def _after(attempt: CommandAttempt, previous: StoredSteps, *, trusted: bool) -> StoredSteps:
    if attempt.after is None:
        return previous
    seen = attempt.after.event
    torn = set()
    first_struck = min(attempt.struck_saves, default=None)
    for step in seen.partial:
        by_fault = first_struck is not None and (step >= first_struck or attempt.struck_retention)
        known = seen.differing.get(step) != UNSAVED
        if known and (step in previous.torn or (trusted and by_fault and step not in previous.unsure)):
            torn.add(step)
    return StoredSteps(
        whole=frozenset(seen.complete),
        torn=frozenset(torn),
        unsure=frozenset(seen.partial) - torn,
        differing=tuple(sorted(seen.differing.items())),
    )


def _may_differ(view: CommandView) -> list[bool]:
    """For each attempt whether what it saved may rightly differ from what golden runs saved, because none had its past.

    Golden runs start anew with the first number of ranks, or resume with any from a checkpoint that such a run had saved.
    """
    found: list[bool] = []
    differs = False
    first = view.attempts[0].world_size if view.attempts else 0
    previous = first
    for attempt in view.attempts:
        seen = attempt.before.event if attempt.before is not None else None
        changed = attempt.world_size != previous
        differs = (
            differs
            or (attempt.chosen is not None and (seen is None or attempt.chosen not in seen.complete + seen.spare))
            or (attempt.chosen is None and attempt.world_size != first)
            or (changed and previous != first)
            or bool(attempt.struck_in_recovery)
            or view.damaged_before(attempt)
        )
        found.append(differs)
        previous = attempt.world_size
    return found
