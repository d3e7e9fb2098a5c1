"""What the ranks trained, step by step, and what the harness's reference says they should have."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from chaosckpt.model.journal import Finished, Reference, ReferenceStep, SaveStarted, StepTrace
from chaosckpt.oracle.saves import Save
from chaosckpt.oracle.view import At, AttemptView, TrialView


@dataclass(frozen=True)
class Trained:
    """One step that one rank trained, with the index of the event that tells it."""

    attempt: int
    rank: int
    trace: StepTrace
    index: int


def trained(attempt: AttemptView, upto: Save | None) -> list[Trained]:
    """The steps that the ranks of an attempt told, up to one of its saves, or up to the end.

    A rank that ended before it began that save has told its steps up to an earlier one.
    """
    found = []
    for track in attempt.tracks:
        last = None if upto is None else upto.started.get(track.rank)
        told: Iterable[At[SaveStarted] | At[Finished]] = [*track.all(SaveStarted), *track.all(Finished)]
        for at in told:
            if last is None or at.index <= last:
                found += [
                    Trained(attempt.number, track.rank, trace, at.index)
                    for trace in at.event.trained
                    if upto is None or trace.step <= upto.step
                ]
    return found


@functools.lru_cache(maxsize=4)
def references(view: TrialView) -> dict[int, At[Reference]]:
    """The reference of each attempt that has one."""
    return {at.event.attempt: at for at in view.all(Reference)}


@functools.lru_cache(maxsize=4)
def _expected(view: TrialView) -> dict[tuple[int, int], ReferenceStep]:
    return {(number, step.step): step for number, at in references(view).items() for step in at.event.steps}


def expected(view: TrialView, attempt: int, step: int) -> ReferenceStep | None:
    """What a reference says of a step: that of this attempt, else that of any other, as the samples are the same."""
    known = _expected(view)
    if (attempt, step) in known:
        return known[attempt, step]
    return next((known[number, step] for number in references(view) if (number, step) in known), None)
