"""durable-acknowledgement: what was acknowledged can be loaded, whatever error was met on the way."""

from __future__ import annotations

from chaosckpt.model.journal import AnyEvent, ErrorInjected
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts.audits import Checked, checked, unaudited, unfinished
from chaosckpt.oracle.facts.command import CommandAttempt, CommandView
from chaosckpt.oracle.facts.requirement import required_step
from chaosckpt.oracle.facts.saves import Injected, described, overcome
from chaosckpt.oracle.facts.view import At, TargetView
from chaosckpt.oracle.invariant import Invariant, NotJudged, lacking
from chaosckpt.oracle.phrasing import audit_of, describe, tiers

NAME = "durable-acknowledgement"
UNAUDITED = "a checkpoint was acknowledged after a fault in its attempt, and no audit shows that it can be loaded"
UNTRIED = "a step was reported as saved after an injected error, and nothing shows whether it could be loaded"


def _of_target(view: TargetView) -> list[Violation] | NotJudged:
    found = checked(view)
    wrong: dict[tuple[int, int], Checked] = {}
    for item in found:
        # One that can't be loaded after this attempt can't be after the next one either.
        if item.problem:
            wrong.setdefault(item.save.key, item)
    if wrong:
        return [_unloadable(view, item) for item in wrong.values()]
    notes = [words for words, _ in unfinished(view)]
    left = unaudited(view)
    if left:
        gaps = [
            f"{save.briefly} was acknowledged after {_of_fault(at)}, and no audit shows that it can be loaded"
            for save, at in left
        ]
        return NotJudged("; ".join([*gaps, *notes]), UNAUDITED)
    if not found:
        words = "no audit loaded an acknowledged checkpoint that the target still had to keep"
        return NotJudged("; ".join(notes) or words)
    return []


def _of_fault(at: At[AnyEvent]) -> str:
    """A fault that may have spoilt a save, as a clause."""
    return described(At(at.index, at.event)) if isinstance(at.event, ErrorInjected) else describe(at.event)


def _unloadable(view: TargetView, item: Checked) -> Violation:
    save = item.save
    errors = overcome(view, save)
    injected = f", although {_told(errors)}," if errors else ","
    last = max(index for levels in save.acknowledged.values() for index in levels.values())
    return view.violation(
        NAME,
        f"Every rank had acknowledged {save.briefly} as safe on {tiers(save.levels)}{injected} but the audit "
        f"{audit_of(item.attempt, item.as_of)} failed: {item.problem}.",
        attempt=item.attempt,
        rank=item.rank,
        step=save.step,
        error_type=item.slug,
        evidence=sorted({*save.evidence, *(error.at.index for error in errors), last, item.index}),
        expected=f"{save}, exactly as it was saved",
        seen=item.problem,
        shown=item.index,
        path=errors[0].at.event.operation.address.path if errors else None,
        blame=not errors,  # the sentence has named them
    )


def _told(errors: list[Injected]) -> str:
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{errors[0]}{more}"


def _of_command(view: CommandView) -> list[Violation] | NotJudged:
    """By what lay on storage after the attempt: what was reported as saved after an error is there, as a golden run left it.

    Where it isn't, it need not be wrong: retention may have removed it, or the command has written it anew in another way. Whether
    it can be loaded shows only where a later attempt has to resume from it.
    """
    missing = lacking(view, "checkpoints", "saved")
    if missing is not None:
        return missing
    reported = [
        (attempt, step, error)
        for attempt in view.attempts
        for step, error in sorted(attempt.erred_saves.items())
        if any(at.event.step == step for at in attempt.saved)
    ]
    gaps = [
        f"the command reported step {step} as saved after {described(error)}; afterwards storage did not hold it as a golden run "
        "leaves it, and no later attempt had to resume from it"
        for attempt, step, error in reported
        if not _is_whole(attempt, step) and not _was_tried(view, attempt, step)
    ]
    if gaps:
        return NotJudged("; ".join(gaps), UNTRIED)
    return [] if reported else NotJudged("no save was reported after an injected error")


def _is_whole(attempt: CommandAttempt, step: int) -> bool:
    return attempt.after is not None and step in attempt.after.event.complete + attempt.after.event.spare


def _was_tried(view: CommandView, saver: CommandAttempt, step: int) -> bool:
    """Whether another invariant has judged what a later attempt made of this step."""
    later = [attempt for attempt in view.attempts if attempt.number > saver.number]
    required = [found for attempt in later if (found := required_step(view, attempt)) is not None]
    return any(attempt.chosen == step for attempt in later) or any(found.step == step for found in required)


durable_acknowledgement = Invariant(
    name=NAME,
    holds="every acknowledged checkpoint that no fault removed and that the target still lists loads exactly, also after an error",
    of_target=_of_target,
    of_command=_of_command,
)
