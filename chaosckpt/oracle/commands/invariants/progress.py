"""progress: after the faults have stopped, the command comes to its end."""

from __future__ import annotations

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.commands import failure, storage
from chaosckpt.oracle.commands.invariant import CommandInvariant, violation
from chaosckpt.oracle.commands.launch import Launch
from chaosckpt.oracle.commands.view import CommandView
from chaosckpt.oracle.invariant import NotJudged


def _judge(view: CommandView) -> list[Violation] | NotJudged:
    closing = view.closing
    if closing is None or closing.end is None:
        return NotJudged("the trial had no closing attempt that ended")
    if closing.outcome == "finished":
        return []
    if closing.outcome == "hung" and not closing.end.event.confirmed:
        return NotJudged("the closing attempt hung, which was not confirmed")
    excuse = failure.excuse(view, closing)
    if excuse is not None:
        return NotJudged(f"the closing attempt failed, but {excuse}")
    if _was_right_to_fail(view, closing):
        return NotJudged("the closing attempt was told to resume, and nothing complete was there")
    return [_stuck(view, closing)]


def _was_right_to_fail(view: CommandView, closing: Launch) -> bool:
    """Whether it was told to resume, by `--resume-args`, though there was nothing that it could have resumed from."""
    told = bool(view.command.resume_argv) and closing.start.event.intent == "resume"
    return told and closing.outcome == "failed" and not closing.resumed and not storage.before(view, closing).whole


def _stuck(view: CommandView, closing: Launch) -> Violation:
    if closing.outcome == "hung":
        slug, how = "hang", "hung"
    else:
        kind, line = failure.error(closing)
        slug, how = kind or "failed", f"ended {closing.ending} ({line})"
    lying = storage.before(view, closing)
    there = f" Step {max(lying.whole)} lay there complete." if lying.whole else ""
    assert closing.end is not None
    return violation(
        view,
        closing,
        progress.name,
        f"The closing attempt {closing.number}, into which no fault was injected, did not come to its end: the command {how}.{there}",
        slug,
        (closing.exit.index if closing.exit is not None else closing.end.index,),
        expected="exit status 0",
        seen=how,
    )


progress = CommandInvariant(
    name="progress",
    holds="after the faults have stopped, the command comes to its end",
    judge=_judge,
)
