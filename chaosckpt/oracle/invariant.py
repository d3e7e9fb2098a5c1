"""What an invariant is: one property of a trial, judged from its journal alone, of a target, of a command, or of either."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.facts.command import CommandView
from chaosckpt.oracle.facts.view import TargetView

View = TargetView | CommandView
"""What an invariant is given: one trial's journal, as a trial of a target or of a command is told."""


@dataclass(frozen=True)
class NotJudged:
    """The trial gave this invariant nothing to judge, for this reason.

    `gap` is set where the trial ought to have, so that it proves less than it seems to: why, for any such trial. A campaign's summary
    names it, with the number of trials.
    """

    reason: str
    gap: str = ""


@dataclass(frozen=True)
class Invariant:
    """One property. `holds` says in a sentence when it holds, of a target where it judges both.

    `of_target` judges a trial of a target, `of_command` one of a command: each returns what breaks the property, nothing
    when it holds. Where one is absent, the invariant doesn't apply to such trials. Both are pure: they read the view and run
    no code of what is tested. An exception in them makes the trial INCONCLUSIVE.
    """

    name: str
    holds: str
    of_target: Callable[[TargetView], list[Violation] | NotJudged] | None = None
    of_command: Callable[[CommandView], list[Violation] | NotJudged] | None = None

    def applies_to(self, view: View) -> bool:
        """Whether it judges what was tested in this trial, a target or a command."""
        return (self.of_command if isinstance(view, CommandView) else self.of_target) is not None

    def judge(self, view: View) -> list[Violation] | NotJudged:
        """What breaks it in this trial."""
        if isinstance(view, CommandView):
            return NotJudged("it doesn't apply to commands") if self.of_command is None else self.of_command(view)
        return NotJudged("it doesn't apply to targets") if self.of_target is None else self.of_target(view)


_MISSING = {
    "checkpoints": "the names of the checkpoints are not known; name them with --checkpoints",
    "resumes": (
        "without any fault the command did not print which step it resumed from; name the line that reports it with --resumed, "
        "and the arguments that make the command resume with --resume-args"
    ),
    "saved": "the line that reports a finished save is not known; name it with --saved",
}


def lacking(view: CommandView, *markers: str) -> NotJudged | None:
    """The first of these markers that is not known of the command, with the option that would help; None where all are known."""
    return next((NotJudged(_MISSING[marker]) for marker in markers if not view.judges(marker)), None)
