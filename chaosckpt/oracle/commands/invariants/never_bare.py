"""never-bare: once there was a complete checkpoint, a crash never leaves the job without one."""

from __future__ import annotations

from chaosckpt.model.journal import FaultInjected
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.commands import storage
from chaosckpt.oracle.commands.invariant import CommandInvariant, violation
from chaosckpt.oracle.commands.launch import Launch
from chaosckpt.oracle.commands.view import CommandView
from chaosckpt.oracle.invariant import NotJudged


def _judge(view: CommandView) -> list[Violation] | NotJudged:
    if not view.judges("checkpoints"):
        return NotJudged("it is not known what the checkpoints are called: --checkpoints")
    found: list[Violation] = []
    subjects = 0
    for launch in view.launches:
        once = _once(view, launch)
        if once is None or launch.after is None:
            continue
        subjects += 1
        left = storage.after(view, launch)
        if not left.whole and not left.unsure and not _has_a_spare(view, launch):
            found.append(_bare(view, launch, *once))
    return found if subjects else NotJudged("no launch that had a complete checkpoint to keep was struck")


def _has_a_spare(view: CommandView, launch: Launch) -> bool:
    """Whether a copy under another name was left that the command makes use of: the next launch shows that, where it tells.

    Not every copy is one, such as the temporary file of a save that isn't over.
    """
    assert launch.after is not None
    spare = launch.after.event.spare
    later = next((other for other in view.launches if other.number > launch.number), None)
    if not spare or later is None or not view.judges("resumes") or later.struck_in_recovery:
        return bool(spare)
    told = {at.event.step for at in later.resumed}
    return bool(told & set(spare)) or (not told and bool(later.disturbed))


def _once(view: CommandView, launch: Launch) -> tuple[int | None, str, tuple[int, ...]] | None:
    """(step, how it is known, evidence) of a complete checkpoint that this launch must not leave storage without.

    The step is None where a fault struck while an older checkpoint was removed, and it isn't known which was the newest.
    """
    if launch.struck_in_recovery or view.damaged_before(launch) or launch.after is None:
        return None
    there = storage.before(view, launch).whole
    if there and launch.before is not None:
        # A command that began anew, because it never resumes or wasn't told to, may overwrite what it doesn't need.
        if launch.chosen is None and not view.judges("resumes"):
            return None
        return max(there), "had been complete before it", (launch.before.index,)
    if launch.struck_retention and not view.judges("saved"):
        struck = next(at for at in launch.all(FaultInjected) if at.event.label.startswith("retire"))
        return None, "had been complete before it was removed", (struck.index,)
    passed = _passed(view, launch)
    if passed is not None and not view.judges("saved"):
        return passed, "had been saved before the save that was struck", (launch.start.index,)
    told = [at for at in launch.saved if at.event.step is not None] if view.judges("saved") else []
    if not told:
        return None
    newest = max(told, key=lambda at: (at.event.step or 0, at.index))
    return newest.event.step or 0, "the command had said was saved", (newest.index,)


def _passed(view: CommandView, launch: Launch) -> int | None:
    """A step that the first launch had surely finished, by golden runs, before a fault struck a later save.

    Between the two lies another one, so that it isn't a save that still goes on in the background.
    """
    resized = any(at.event.operation is None for at in launch.all(FaultInjected))
    if launch is not view.launches[0] or resized or not launch.struck_saves:
        return None
    earlier = [step for step in view.start.saves if step < min(launch.struck_saves)]
    return earlier[-2] if len(earlier) > 1 else None


def _bare(view: CommandView, launch: Launch, step: int | None, how: str, evidence: tuple[int, ...]) -> Violation:
    assert launch.after is not None
    which = "an older one" if step is None else f"step {step}"
    return violation(
        view,
        launch,
        never_bare.name,
        f"After attempt {launch.number} no complete checkpoint was left, though {which} {how}.",
        "nothing-left",
        (*evidence, launch.after.index),
        expected=f"{which}, or a newer one",
        seen="no complete checkpoint",
        step=step,
    )


never_bare = CommandInvariant(
    name="never-bare",
    holds="once there was a complete checkpoint, there always is one",
    judge=_judge,
)
