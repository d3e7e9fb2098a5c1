"""What a launch owes: the newest checkpoint that it has to find, by what earlier launches said or were seen to finish."""

from __future__ import annotations

from dataclasses import dataclass

from chaosckpt.model import journal as j
from chaosckpt.oracle.commands import storage
from chaosckpt.oracle.commands.launch import Launch
from chaosckpt.oracle.commands.view import CommandView
from chaosckpt.oracle.view import At


@dataclass(frozen=True)
class Owed:
    """The step that a launch has to find, why, with the journal's indices; `there`: it lay on storage, complete."""

    step: int
    why: str
    evidence: tuple[int, ...]
    there: bool


def owed(view: CommandView, launch: Launch) -> Owed | None:
    """The newest finished save of the history that the job is in; None where nothing is required of this launch.

    With `--saved` only what was said to be saved counts. Without it a save counts once the job has gone on to another one, so that
    no fault can have struck between its files and what a script keeps elsewhere, such as a pointer to the newest checkpoint.
    """
    if launch.before is None or launch not in view.recoveries or not view.judges("checkpoints", "resumes"):
        return None
    lying = storage.before(view, launch)
    if not lying.whole and not lying.unsure:
        return None  # that nothing is left is never-bare's to tell
    standing = _standing(view, launch)
    for step in sorted(standing, reverse=True):
        said = standing[step]
        if step in lying.whole:
            if said is None:
                return Owed(step, "which lay there complete", (launch.before.index,), True)
            return Owed(step, "which it had said was saved", (said.index, launch.before.index), True)
        if said is not None and step not in lying.unsure and (step in lying.torn or _is_lost(view, launch, step)):
            how = "of which " + lying.wrong(step) + " is wrong" if step in lying.torn else "of which nothing is there"
            return Owed(step, f"which it had said was saved, and {how}", (said.index, launch.before.index), False)
    return None


def _standing(view: CommandView, launch: Launch) -> dict[int, At[j.Said] | None]:
    """The steps that the job has saved on the way to this launch, each with the line that said so.

    A launch that resumed from an older step leaves the newer ones behind: a script need not come back to them.
    """
    standing: dict[int, At[j.Said] | None] = {}
    for earlier in view.earlier(launch):
        since = _went_on_from(earlier)
        if since is not None:
            standing = {step: said for step, said in standing.items() if step <= since}
        if earlier.chosen is not None and earlier.chosen in storage.before(view, earlier).whole:
            standing.setdefault(earlier.chosen, None)
        standing.update(_finished_saves(view, earlier))
    return standing


def _went_on_from(launch: Launch) -> int | None:
    """The step from which a launch trained on, -1 for a fresh start; None where it can't have trained."""
    known = [at.event.step for at in launch.resumed if at.event.step is not None]
    if known:
        return min(known)
    reached_a_save = bool(launch.struck_saves or launch.saved)
    return -1 if reached_a_save or launch.undisturbed else None


def _finished_saves(view: CommandView, launch: Launch) -> dict[int, At[j.Said] | None]:
    if view.judges("saved"):
        return {at.event.step: at for at in launch.saved if at.event.step is not None}
    since = _went_on_from(launch)
    if launch.after is None or since is None:
        return {}
    new = [step for step in launch.after.event.complete if step > since]
    if launch.undisturbed:
        return dict.fromkeys(new)
    if launch.struck_saves:
        first = min(launch.struck_saves)
        return dict.fromkeys(step for step in new if step < first)
    return {}


def _is_lost(view: CommandView, launch: Launch, step: int) -> bool:
    """Whether a step that was said to be saved and is not on storage was lost, and not removed by the script's own choice."""
    tellers = [other for other in view.earlier(launch) if any(at.event.step == step for at in other.saved)]
    return bool(tellers) and (step in tellers[-1].struck_saves or _keeps_the_newest(view))


def _keeps_the_newest(view: CommandView) -> bool:
    """Whether every launch without a fault has left the newest step that it said it saved: some scripts keep the best instead."""
    shown = [launch for launch in view.launches if launch.undisturbed and launch.saved and launch.after is not None]
    return bool(shown) and all(_left_its_newest(launch) for launch in shown)


def _left_its_newest(launch: Launch) -> bool:
    assert launch.after is not None
    steps = [at.event.step for at in launch.saved if at.event.step is not None]
    return not steps or max(steps) in launch.after.event.complete + launch.after.event.partial
