"""result-equal: the job ends with the result of the uninterrupted run."""

from __future__ import annotations

from chaosckpt.model import journal as j
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.blame import INEXACT
from chaosckpt.oracle.facts.command import CommandView
from chaosckpt.oracle.invariant import Invariant, NotJudged

NAME = "result-equal"


def _of_command(view: CommandView) -> list[Violation] | NotJudged:
    if not view.judges("result"):
        return NotJudged(
            "no result is the same in two golden runs; name one with --result, or with --result-cmd and --tolerance"
        )
    closing = view.closing
    compared = closing.all(j.ResultCompared) if closing is not None else []
    if closing is None or not compared:
        return NotJudged("the closing attempt did not finish")
    if view.topology_changed:
        return NotJudged("the number of ranks changed, and with it the result")
    if view.damaged_before(closing):
        return NotJudged("a fault damaged a file, and no command has to notice that")
    at = compared[-1]
    if at.event.equal:
        return []
    resumed = closing.chosen
    how = f"resumed from step {resumed}" if resumed is not None else "launched again"
    sentence = f"The command, {how} in attempt {closing.number}, ended with another result than the uninterrupted run."
    exact = view.judges("exact")
    if not exact:
        sentence += " The result differs without any fault, too: the command does not save, or does not restore, its whole state."
    return [
        view.violation(
            NAME,
            sentence,
            attempt=closing.number,
            step=resumed,
            error_type="other-result" if exact else INEXACT,
            evidence=(at.index,),
            expected=at.event.expected,
            seen=at.event.seen,
        )
    ]


result_equal = Invariant(
    name=NAME,
    holds="the job ends with the result of the uninterrupted run",
    of_command=_of_command,
)
