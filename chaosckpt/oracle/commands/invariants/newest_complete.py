"""newest-complete: a launch resumes from the newest checkpoint that was finished, or from a newer one."""

from __future__ import annotations

from collections.abc import Iterator

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.commands import failure
from chaosckpt.oracle.commands.invariant import TELLS_NO_STEP, CommandInvariant, violation
from chaosckpt.oracle.commands.launch import Launch
from chaosckpt.oracle.commands.owed import Owed, owed
from chaosckpt.oracle.commands.view import CommandView
from chaosckpt.oracle.invariant import NotJudged


def _judge(view: CommandView) -> list[Violation] | NotJudged:
    if not view.judges("checkpoints"):
        return NotJudged("it is not known what the checkpoints are called: --checkpoints")
    if not view.judges("resumes"):
        return NotJudged(TELLS_NO_STEP)
    found: list[Violation] = []
    subjects = 0
    for launch in view.recoveries:
        required = owed(view, launch)
        if required is not None and failure.excuse(view, launch) is None:
            subjects += 1
            found += _shortfall(view, launch, required)
    return found if subjects else NotJudged("no launch had a checkpoint that it was required to find")


def _shortfall(view: CommandView, launch: Launch, required: Owed) -> Iterator[Violation]:
    where = f"In attempt {launch.number} the command"
    steps = [at.event.step for at in launch.resumed]
    known = [step for step in steps if step is not None]
    if known and len(known) == len(steps):
        if max(known) < required.step:
            slug = "older-checkpoint" if required.there else "not-what-was-said"
            seen = f"step {max(known)}"
            sentence = f"{where} resumed from {seen}, which is older than step {required.step}, {required.why}."
            yield _violation(view, launch, required, sentence, slug, launch.resumed[-1].index, seen)
    elif steps:
        return  # a line without a number
    elif launch.failed and launch.exit is not None:
        kind, line = failure.error(launch)
        sentence = f"{where} ended {launch.ending} before it had resumed ({line}), in spite of step {required.step}, {required.why}."
        yield _violation(view, launch, required, sentence, kind or "failed-to-resume", launch.exit.index, line)
    elif _began_anew(view, launch, required) and launch.end is not None:
        sentence = f"{where} began anew, in spite of step {required.step}, {required.why}."
        yield _violation(view, launch, required, sentence, "nothing-chosen", launch.end.index, "a fresh start")


def _began_anew(view: CommandView, launch: Launch, required: Owed) -> bool:
    """Whether a launch that came to its end in silence has trained from the beginning.

    A job that had reached its end before may say nothing and do nothing. One that begins anew saves early steps again, and so
    it performs about as many operations as the first launch at least.
    """
    if launch.outcome != "finished" or launch.killed:
        return False
    if any(other.undisturbed for other in view.earlier(launch)):
        return False
    if view.judges("saved"):
        return any(at.event.step is not None and at.event.step <= required.step for at in launch.saved)
    first = view.launches[0].operations
    return first > 0 and 2 * launch.operations >= first


def _violation(
    view: CommandView, launch: Launch, required: Owed, sentence: str, slug: str, index: int, seen: str
) -> Violation:
    return violation(
        view,
        launch,
        newest_complete.name,
        sentence,
        slug,
        (*required.evidence, index),
        expected=f"step {required.step}, or a newer complete one",
        seen=seen,
        step=required.step,
    )


newest_complete = CommandInvariant(
    name="newest-complete",
    holds="a launch resumes from the newest checkpoint that was finished, or from a newer complete one",
    judge=_judge,
)
