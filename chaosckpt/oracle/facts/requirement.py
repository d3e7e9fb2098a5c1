"""What a recovery is required to find, by what was saved before it and what was destroyed since: of a target, and of a command."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from chaosckpt.model import journal as j
from chaosckpt.model.journal import Recovered
from chaosckpt.oracle.facts import command_storage as storage
from chaosckpt.oracle.facts.command import CommandAttempt, CommandView
from chaosckpt.oracle.facts.saves import Save, saves
from chaosckpt.oracle.facts.survival import SHARED, Reader, Reason, breach, standing, surely_gone
from chaosckpt.oracle.facts.view import At, TargetAttempt, TargetView

Kind = Literal["must-recover", "may-recover", "must-refuse", "may-start"]
"""must-recover: something is required. may-recover: something may be left, nothing is required.
must-refuse: nothing can be left, and an empty hand is an error. may-start: nothing can be left, and step 0 is fine."""


@dataclass(frozen=True)
class Requirement:
    """What the recovery of a target's attempt has to find: at most one required save; the permitted ones, newest first.

    `reasons` has one entry a save, newest first, and `notes` what else decided, both with their journal indices.
    """

    attempt: int
    kind: Kind
    required: Save | None
    permitted: tuple[Save, ...]
    reasons: tuple[Reason, ...]
    notes: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def permits(self, save: Save) -> bool:
        return any(save.key == other.key for other in self.permitted)


@functools.lru_cache(maxsize=8)  # each entry keeps the whole trial
def requirement(view: TargetView, attempt: TargetAttempt) -> Requirement:
    """What the recovery of this attempt has to find, from what the journal shows of the time before it. Pure."""
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
                newest = "the newest save" if attempt.recovery_harmed else "required: the newest save"
                reason = Reason(save, f"{newest} that is {reason.words}", reason.evidence)
        reasons.append(reason)
    notes: list[tuple[str, tuple[int, ...]]] = []
    if required is not None and attempt.recovery_harmed:
        harm = (
            "a fault made an operation of this recovery fail or killed one of its ranks, so no checkpoint is required"
        )
        notes.append((harm, attempt.recovery_harmed))
        required = None
    left = [save for save in earlier if not surely_gone(save, tiers, losses)]
    permitted = tuple(save for save in left if required is None or save.key >= required.key)
    return Requirement(
        attempt.number, _kind(view, attempt, required, permitted), required, permitted, tuple(reasons), tuple(notes)
    )


def _kind(view: TargetView, attempt: TargetAttempt, required: Save | None, permitted: Sequence[Save]) -> Kind:
    if required is not None:
        return "must-recover"
    if permitted:
        return "may-recover"
    return "must-refuse" if attempt.resumes and view.start.fresh_start == "refused" else "may-start"


def abandoned(view: TargetView, save: Save, before: int) -> tuple[str, tuple[int, ...]] | None:
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
        needed = requirement(view, between).required
        if older and (needed is None or needed.key < save.key):
            words = f"attempt {again.attempt} rightly resumed from an older checkpoint and saved this step again"
            return words, (between.start.index, again.first_index)
    return None


@dataclass(frozen=True)
class RequiredStep:
    """The step that an attempt of a command has to find, why, with the journal's indices; `there`: it lay on storage, complete."""

    step: int
    why: str
    evidence: tuple[int, ...]
    there: bool


def required_step(view: CommandView, attempt: CommandAttempt) -> RequiredStep | None:
    """The newest finished save of the history that the job is in; None where nothing is required of this attempt.

    With `--saved` only what was said to be saved counts. Without it a save counts once the job has gone on to another one, so that
    no fault can have struck between its files and what a script keeps elsewhere, such as a pointer to the newest checkpoint.
    """
    if attempt.before is None or attempt not in view.recoveries or not view.judges("checkpoints", "resumes"):
        return None
    lying = storage.before(view, attempt)
    if not lying.whole and not lying.unsure:
        return None  # that nothing is left is always-recoverable's to tell
    standing = _standing(view, attempt)
    for step in sorted(standing, reverse=True):
        said = standing[step]
        if step in lying.whole:
            if said is None:
                return RequiredStep(step, f"step {step} was complete on storage", (attempt.before.index,), True)
            return RequiredStep(
                step, f"the command had reported step {step} as saved", (said.index, attempt.before.index), True
            )
        if said is not None and step not in lying.unsure and (step in lying.torn or _is_lost(view, attempt, step)):
            how = f"{lying.wrong(step)} is wrong now" if step in lying.torn else "nothing is left"
            return RequiredStep(
                step,
                f"the command had reported step {step} as saved, of which {how}",
                (said.index, attempt.before.index),
                False,
            )
    return None


def _standing(view: CommandView, attempt: CommandAttempt) -> dict[int, At[j.Said] | None]:
    """The steps that the job has saved on the way to this attempt, each with the line that said so.

    An attempt that resumed from an older step leaves the newer ones behind: a script need not come back to them.
    """
    standing: dict[int, At[j.Said] | None] = {}
    for earlier in view.earlier(attempt):
        since = _went_on_from(earlier)
        if since is not None:
            standing = {step: said for step, said in standing.items() if step <= since}
        if earlier.chosen is not None and earlier.chosen in storage.before(view, earlier).whole:
            standing.setdefault(earlier.chosen, None)
        standing.update(_finished_saves(view, earlier))
    return standing


def _went_on_from(attempt: CommandAttempt) -> int | None:
    """The step from which an attempt trained on, -1 for a fresh start; None where it can't have trained."""
    known = [at.event.step for at in attempt.resumed if at.event.step is not None]
    if known:
        return min(known)
    reached_a_save = bool(attempt.struck_saves or attempt.saved)
    return -1 if reached_a_save or attempt.undisturbed else None


def _finished_saves(view: CommandView, attempt: CommandAttempt) -> dict[int, At[j.Said] | None]:
    if view.judges("saved"):
        return {at.event.step: at for at in attempt.saved if at.event.step is not None}
    since = _went_on_from(attempt)
    if attempt.after is None or since is None:
        return {}
    new = [step for step in attempt.after.event.complete if step > since]
    if attempt.undisturbed:
        return dict.fromkeys(new)
    if attempt.struck_saves:
        first = min(attempt.struck_saves)
        return dict.fromkeys(step for step in new if step < first)
    return {}


def _is_lost(view: CommandView, attempt: CommandAttempt, step: int) -> bool:
    """Whether a step that was said to be saved and is not on storage was lost, and not removed by the script's own choice."""
    tellers = [other for other in view.earlier(attempt) if any(at.event.step == step for at in other.saved)]
    return bool(tellers) and (step in tellers[-1].struck_saves or _keeps_the_newest(view))


def _keeps_the_newest(view: CommandView) -> bool:
    """Whether every attempt without a fault has left the newest step that it said it saved: some scripts keep the best instead."""
    shown = [
        attempt for attempt in view.attempts if attempt.undisturbed and attempt.saved and attempt.after is not None
    ]
    return bool(shown) and all(_left_its_newest(attempt) for attempt in shown)


def _left_its_newest(attempt: CommandAttempt) -> bool:
    assert attempt.after is not None
    steps = [at.event.step for at in attempt.saved if at.event.step is not None]
    return not steps or max(steps) in attempt.after.event.complete + attempt.after.event.partial
