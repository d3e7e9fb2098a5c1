"""What bounds an interval: saves that must not pile up, the loss that is tolerated, the space for what is retained."""

from __future__ import annotations

import math

import msgspec

from chaosckpt.measure.measurement import Limit
from chaosckpt.measure.overhead import Costs
from chaosckpt.model.phrasing import plural
from chaosckpt.report.quantities import bytes_text, seconds_text


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """What a job asks for, and the space that it has. None: nothing is asked, or nothing is known.

    `left_bytes` is what each save leaves behind beside its checkpoint. `keep_seconds` is how long a checkpoint is kept by age; without
    it a fixed number of generations is retained.
    """

    tolerated_loss_seconds: float | None = None
    checkpoint_bytes: int = 0
    retained_generations: int = 1
    retires: bool = True
    temporary_bytes: int = 0
    left_bytes: int = 0
    space_bytes: int | None = None
    keep_seconds: float | None = None

    @property
    def newest_bytes(self) -> int:
        """What lies beside the retained checkpoints while the next one is written."""
        return max(self.temporary_bytes, self.checkpoint_bytes)


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Where an interval may lie. Where the bounds contradict each other the lower one wins: shorter intervals would only wait."""

    low_seconds: float
    high_seconds: float | None
    limits: tuple[Limit, ...]

    def nearest(self, seconds: float) -> float:
        """The allowed interval nearest to this one."""
        high = math.inf if self.high_seconds is None else self.high_seconds
        return max(self.low_seconds, min(seconds, high))


def worst_loss(costs: Costs, interval_seconds: float) -> float:
    """The age of the newest complete checkpoint when the job fails just before the next one is complete, in seconds."""
    return max(interval_seconds + costs.lost_seconds, costs.completion_seconds) + costs.completion_seconds


def bounds(
    costs: Costs, needs: Needs, completion_seconds: float, step_seconds: float | None, least_seconds: float
) -> Bounds:
    """The bounds from a backlog, a tolerated loss, space and the step; `completion_seconds` is the longest that was seen.

    The upper bound is None where nothing bounds from above. One below the lower bound is raised to it, and its limit doesn't hold.
    """
    limits = [_backlog(costs, completion_seconds), *_step(step_seconds, completion_seconds), *_kept(costs, needs)]
    low = max(least_seconds, *(limit.seconds for limit in limits if limit.seconds is not None))
    tolerated = needs.tolerated_loss_seconds
    if tolerated is None:
        return Bounds(low_seconds=low, high_seconds=None, limits=tuple(limits))
    high = tolerated - costs.completion_seconds - costs.lost_seconds
    limits.append(_loss(costs, tolerated, high, low))
    return Bounds(low_seconds=low, high_seconds=max(low, high), limits=tuple(limits))


def storage_limit(needs: Needs, period_seconds: float) -> tuple[Limit, ...]:
    """Whether what is retained fits the space, where the interval doesn't decide it; none where the space is unknown.

    `period_seconds` lie between the beginnings of two saves.
    """
    if needs.space_bytes is None or needs.checkpoint_bytes <= 0 or needs.keep_seconds is not None:
        return ()
    peak = needs.retained_generations * needs.checkpoint_bytes + needs.newest_bytes
    space = bytes_text(needs.space_bytes)
    if needs.retires:
        kept = plural(needs.retained_generations, "retained checkpoint")
        text = f"{kept} and the one being written take {bytes_text(peak)}; {space} are free"
        if needs.left_bytes > 0:
            saves = max(0, needs.space_bytes - peak) // needs.left_bytes
            text += (
                f", and the storage is full after {plural(saves, 'save')}, {seconds_text(saves * period_seconds)} at this interval, "
                f"since each save leaves {bytes_text(needs.left_bytes)} behind"
            )
    else:
        saves = needs.space_bytes // needs.checkpoint_bytes
        text = (
            f"no checkpoint was removed: the free {space} are full after {plural(saves, 'save')}, "
            f"{seconds_text(saves * period_seconds)} at this interval"
        )
    return (Limit(name="storage", seconds=None, holds=peak <= needs.space_bytes, sentence=text),)


def _backlog(costs: Costs, completion: float) -> Limit:
    text = f"a save completed after at most {seconds_text(completion)}: at shorter intervals saves wait or pile up"
    if not costs.write_behind_seconds:
        text = (
            f"a save took at most {seconds_text(completion)} and is complete when save() returns: saves cannot pile up"
        )
    return Limit(name="backlog", bound="at least", seconds=completion, holds=True, sentence=text)


def _step(step: float | None, completion: float) -> list[Limit]:
    if step is None or step <= completion:
        return []
    text = f"a training step takes {seconds_text(step)}, and saves start between steps"
    return [Limit(name="step", bound="at least", seconds=step, holds=True, sentence=text)]


def _kept(costs: Costs, needs: Needs) -> list[Limit]:
    """What is kept by age, and one that is being written, have to fit the space."""
    if needs.keep_seconds is None or needs.space_bytes is None or needs.checkpoint_bytes <= 0:
        return []
    asked = f"checkpoints of {bytes_text(needs.checkpoint_bytes)}, kept for {seconds_text(needs.keep_seconds)},"
    space = f"{bytes_text(needs.space_bytes)} are free"
    generations = (needs.space_bytes - needs.newest_bytes) / needs.checkpoint_bytes
    if generations < 1:
        text = f"{asked} never fit: {space}, and two checkpoints need more; free some space"
        return [Limit(name="storage", bound="at least", seconds=None, holds=False, sentence=text)]
    shortest = max(0.0, needs.keep_seconds / generations - costs.lost_seconds)
    text = f"{asked} must fit, and {space}: at most {int(generations)} beside the one being written"
    return [Limit(name="storage", bound="at least", seconds=shortest, holds=True, sentence=text)]


def _loss(costs: Costs, tolerated: float, high: float, low: float) -> Limit:
    asked = f"a loss of {seconds_text(tolerated)} is tolerated"
    if high >= low:
        text = (
            f"in the worst case the newest complete checkpoint is as old as an interval, a save ({seconds_text(costs.lost_seconds)}) "
            f"and a completion ({seconds_text(costs.completion_seconds)}) together; {asked}"
        )
    else:
        text = (
            f"{asked}, but even at the shortest interval within the other limits the newest complete checkpoint may be "
            f"{seconds_text(worst_loss(costs, low))} old; make saves faster, or tolerate more"
        )
    return Limit(name="tolerated loss", bound="at most", seconds=max(high, 0.0), holds=high >= low, sentence=text)
