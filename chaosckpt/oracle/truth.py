"""The truth of a trial: what each recovery owes, by what was acknowledged before it and what was destroyed since."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from chaosckpt.model.journal import Recovered
from chaosckpt.oracle.saves import Save, saves
from chaosckpt.oracle.survival import SHARED, Reader, Reason, breach, standing, surely_gone
from chaosckpt.oracle.view import AttemptView, TrialView

Duty = Literal["must-recover", "may-recover", "must-refuse", "may-start"]
"""What a recovery owes. must-recover: something is required. may-recover: something may be left, nothing is owed.
must-refuse: nothing can be left, and an empty hand is an error. may-start: nothing can be left, and step 0 is fine."""


@dataclass(frozen=True)
class Owed:
    """What the recovery of one attempt owes: at most one required save; the permitted ones, newest first.

    `reasons` has one entry a save, newest first, and `notes` what else decided, both with their journal indices.
    """

    attempt: int
    duty: Duty
    required: Save | None
    permitted: tuple[Save, ...]
    reasons: tuple[Reason, ...]
    notes: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def permits(self, save: Save) -> bool:
        return any(save.key == other.key for other in self.permitted)


@functools.lru_cache(maxsize=64)
def owed(view: TrialView, attempt: AttemptView) -> Owed:
    """What the recovery of this attempt owes, from what the journal shows of the time before it. Pure."""
    earlier = [save for save in saves(view) if save.attempt < attempt.number]
    earlier.sort(key=lambda save: save.key, reverse=True)
    reader = Reader.recovery(attempt)
    losses = reader.losses(view)
    tiers = {SHARED} | {level for save in earlier for level in save.levels}
    required: Save | None = None
    decided = False
    reasons = []
    for save in earlier:
        reason, candidate = standing(save, losses, reader)
        if candidate and not decided:
            given_up = abandoned(view, save, attempt.number)
            struck = None if given_up else breach(view, save, reader)
            decided = not given_up
            if given_up is not None:
                reason = Reason(save, f"{reason.words}, but {given_up[0]}: not required", given_up[1])
            elif struck is not None:
                reason = Reason(save, f"{reason.words}, but {struck[0]}: not required", (*reason.evidence, *struck[1]))
            else:
                required = save
                newest = "the newest one" if attempt.recovery_harmed else "required: the newest one"
                reason = Reason(save, f"{newest} that is {reason.words}", reason.evidence)
        reasons.append(reason)
    notes: list[tuple[str, tuple[int, ...]]] = []
    if required is not None and attempt.recovery_harmed:
        harm = "an error was injected into this very recovery, or a rank killed in it, so nothing is required of it"
        notes.append((harm, attempt.recovery_harmed))
        required = None
    left = [save for save in earlier if not surely_gone(save, tiers, losses)]
    permitted = tuple(save for save in left if required is None or save.key >= required.key)
    return Owed(
        attempt.number, _duty(view, attempt, required, permitted), required, permitted, tuple(reasons), tuple(notes)
    )


def _duty(view: TrialView, attempt: AttemptView, required: Save | None, permitted: Sequence[Save]) -> Duty:
    if required is not None:
        return "must-recover"
    if permitted:
        return "may-recover"
    return "must-refuse" if attempt.resumes and view.start.fresh_start == "refused" else "may-start"


def abandoned(view: TrialView, save: Save, before: int) -> tuple[str, tuple[int, ...]] | None:
    """In words, with evidence: the attempt after the save's and `before` this one that rightly resumed from an older
    save and saved this step again.

    From then on the save belongs to a branch that training has left, and its place may be taken by the new one.
    """
    for again in saves(view):
        if again.step != save.step or not save.attempt < again.attempt < before:
            continue
        between = view.attempt(again.attempt)
        if between is None:
            continue
        said = [at.event.chosen for at in between.all(Recovered)]
        older = said and all(chosen is None or chosen < save.step for chosen in said)
        duty = owed(view, between).required
        if older and (duty is None or duty.key < save.key):
            words = f"attempt {again.attempt} was entitled to resume from an older one and has saved that step anew"
            return words, (between.start.index, again.first_index)
    return None
