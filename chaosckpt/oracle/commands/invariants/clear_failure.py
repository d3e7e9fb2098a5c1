"""clear-failure: a command that can't resume says so: in time, with a status other than 0, naming the checkpoint."""

from __future__ import annotations

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.commands import failure, storage
from chaosckpt.oracle.commands.invariant import TELLS_NO_STEP, CommandInvariant, violation
from chaosckpt.oracle.commands.launch import Launch
from chaosckpt.oracle.commands.owed import owed
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
        if launch.resumed or launch.disturbed or not storage.before(view, launch).any:
            continue
        if launch.outcome == "hung" and launch.end is not None and launch.end.event.confirmed:
            subjects += 1
            found.append(_hang(view, launch, launch.end.index))
        elif launch.failed and owed(view, launch) is None and failure.excuse(view, launch) is None:
            subjects += 1
            if launch.exit is not None and not failure.names_a_checkpoint(launch):
                found.append(_unclear(view, launch, launch.exit.index))
    return found if subjects else NotJudged("no launch failed to resume by itself")


def _hang(view: CommandView, launch: Launch, index: int) -> Violation:
    sentence = f"In attempt {launch.number} the command hung before it had resumed."
    return violation(
        view,
        launch,
        clear_failure.name,
        sentence,
        "hang",
        (index,),
        expected="it resumes, or fails in time",
        seen="a hang",
    )


def _unclear(view: CommandView, launch: Launch, index: int) -> Violation:
    kind, line = failure.error(launch)
    return violation(
        view,
        launch,
        clear_failure.name,
        f"In attempt {launch.number} the command ended {launch.ending} with nothing complete to resume from, and its error names no "
        f"checkpoint: {line}.",
        kind or "unclear-error",
        (index,),
        expected="an error that names the checkpoint",
        seen=line,
    )


clear_failure = CommandInvariant(
    name="clear-failure",
    holds="a command that can't resume says so, in time and with a status other than 0, naming the checkpoint",
    judge=_judge,
)
