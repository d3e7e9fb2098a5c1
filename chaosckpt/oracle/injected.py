"""Errors that faults injected into saves: into which save, and whether it was acknowledged all the same."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chaosckpt.model.journal import ErrorInjected, FaultInjected, SaveStarted
from chaosckpt.oracle.saves import Save, saves
from chaosckpt.oracle.view import At, AttemptView, TrialView

_SAVE = re.compile(r"\bsave (\d+)$")


@dataclass(frozen=True)
class Injected:
    """One error injected into the save of `step` in an attempt. `labelled`: the census says so, not only the order of
    events."""

    at: At[ErrorInjected]
    step: int
    labelled: bool

    def __str__(self) -> str:
        return f"{self.at.event.error} was injected at {self.at.event.operation.address}"


def injected(attempt: AttemptView) -> list[Injected]:
    """Those of one attempt, in order; errors injected into its recovery aren't among them."""
    labels = {
        landed.event.operation.address: landed.event.label
        for landed in attempt.all(FaultInjected)
        if landed.event.operation is not None
    }
    found = []
    for at in attempt.all(ErrorInjected):
        rank = at.event.rank
        label = labels.get(at.event.operation.address, "")
        named = _SAVE.search(label)
        if named is not None:
            found.append(Injected(at, int(named.group(1)), labelled=True))
        elif not label and rank < attempt.world_size:
            begun = [s.event.step for s in attempt.tracks[rank].all(SaveStarted) if s.index < at.index]
            found += [Injected(at, begun[-1], labelled=False)] if begun else []
    return found


def overcome(view: TrialView, save: Save) -> list[Injected]:
    """The errors that were injected into a save before the rank that met them was told that its part is safe."""
    attempt = view.attempt(save.attempt)
    if attempt is None or save.status != "acknowledged":
        return []
    told = {rank: max(levels.values()) for rank, levels in save.acknowledged.items()}
    errors = [error for error in injected(attempt) if error.step == save.step]
    return [error for error in errors if error.at.index < told.get(error.at.event.rank, 0)]


def save_of(view: TrialView, attempt: int, step: int) -> Save | None:
    """This attempt's save of this step, if a rank started one."""
    return next((save for save in saves(view) if save.key == (step, attempt)), None)
