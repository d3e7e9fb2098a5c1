"""complete-only: no launch resumes from a checkpoint whose files a fault left incomplete."""

from __future__ import annotations

from chaosckpt.model import journal as j
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.commands import storage
from chaosckpt.oracle.commands.invariant import TELLS_NO_STEP, CommandInvariant, violation
from chaosckpt.oracle.commands.launch import Launch
from chaosckpt.oracle.commands.view import CommandView
from chaosckpt.oracle.invariant import NotJudged


def _judge(view: CommandView) -> list[Violation] | NotJudged:
    if not view.judges("checkpoints"):
        return NotJudged("it is not known what the checkpoints are called: --checkpoints")
    if not view.judges("resumes"):
        return NotJudged(TELLS_NO_STEP)
    judged = [launch for launch in view.recoveries if launch.chosen is not None and launch.read_what_it_chose]
    if not judged:
        return NotJudged(
            "no launch without a fault in its recovery said that it resumed, and read a file of that checkpoint"
        )
    return [
        found
        for launch in judged
        if launch.chosen in storage.before(view, launch).torn and not _did_no_harm(view, launch)
        for found in [_resumed_torn(view, launch)]
    ]


def _resumed_torn(view: CommandView, launch: Launch) -> Violation:
    assert launch.before is not None
    assert launch.chosen is not None
    wrong = storage.before(view, launch).wrong(launch.chosen)
    ended = " It was not able to load it." if launch.failed else ""
    return violation(
        view,
        launch,
        complete_only.name,
        f"In attempt {launch.number} the command resumed from step {launch.chosen}, whose checkpoint was not complete: "
        f"{wrong} is missing, or not as a golden run left it.{ended}",
        "incomplete-checkpoint",
        (launch.before.index, launch.resumed[-1].index),
        expected="a complete checkpoint",
        seen=f"step {launch.chosen}, without {wrong}",
        step=launch.chosen,
    )


def _did_no_harm(view: CommandView, launch: Launch) -> bool:
    """Whether the job, which went on from this checkpoint to its end, has exactly the result of the uninterrupted run.

    Then what is missing of the checkpoint, such as a file for people, is nothing that its state needs.
    """
    if view.command.result_command is not None and view.command.tolerance > 0:
        return False
    compared = [at.event.equal for other in view.launches for at in other.all(j.ResultCompared)]
    later = [other for other in view.launches if other.number > launch.number]
    went_on = all(other.chosen is not None and other.chosen >= (launch.chosen or 0) for other in later)
    return compared[-1:] == [True] and went_on


complete_only = CommandInvariant(
    name="complete-only",
    holds="no launch resumes from a checkpoint whose files are not complete",
    judge=_judge,
)
