"""The verdict on a command's trial."""

from __future__ import annotations

from collections.abc import Iterator

from chaosckpt.model import journal as j
from chaosckpt.model.journal import Journal
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.verdict import Verdict, Violation
from chaosckpt.oracle.commands.invariants import COMMAND_INVARIANTS
from chaosckpt.oracle.commands.view import CommandView
from chaosckpt.oracle.invariant import NotJudged
from chaosckpt.oracle.judgement import doubtful_faults, doubtful_trace
from chaosckpt.oracle.view import TrialView
from chaosckpt.oracle.words import in_words

_ORDER = {invariant.name: place for place, invariant in enumerate(COMMAND_INVARIANTS)}


def check_command(scenario: Scenario, journal: Journal) -> Verdict:
    """Judge a trial of a command. Pure, and never raises for a journal cut off anywhere."""
    for event in journal.events:
        if isinstance(event, j.HarnessTrouble):
            return Verdict(outcome="inconclusive", reason=f"the harness itself failed: {event.what}")
    try:
        view, trial = CommandView(journal), TrialView(scenario, journal)
    except ValueError as error:
        return Verdict(outcome="inconclusive", reason=f"{error}; it was cut off or is another file")
    if not isinstance(journal.events[-1], j.TrialEnded):
        return Verdict(outcome="inconclusive", reason="the journal was cut off: it doesn't tell the end of the trial")
    violations: list[Violation] = []
    judged: list[str] = []
    for invariant in COMMAND_INVARIANTS:
        found = invariant.judge(view)
        if not isinstance(found, NotJudged):
            judged.append(invariant.name)
            violations += found
    if violations:
        first, *others = sorted(violations, key=lambda v: (_ORDER[v.invariant], v.attempt, v.sentence))
        return Verdict(outcome="violation", primary=first, others=tuple(others), judged=tuple(judged))
    doubts = list(_doubts(view, trial))
    if doubts:
        return Verdict(outcome="inconclusive", reason="; ".join(doubts), judged=tuple(judged))
    return Verdict(outcome="pass", judged=tuple(judged))


def _doubts(view: CommandView, trial: TrialView) -> Iterator[str]:
    """Why a trial without violation is not a pass, in words."""
    yield from doubtful_faults(trial)
    for launch in view.launches:
        if launch.end is None:
            yield f"the journal doesn't tell how attempt {launch.number} ended"
        elif launch.outcome == "hung" and not launch.killed and not launch.end.event.confirmed:
            yield f"attempt {launch.number} hung, which was not confirmed by running it alone at three times the deadline"
    if view.closing is None:
        yield "there was no closing attempt"
    yield from doubtful_trace(trial)


def explain_command(scenario: Scenario, journal: Journal) -> str:
    """Plain text: what each launch found, did and said, and the verdict. `#12` is the journal's event number 12."""
    verdict = check_command(scenario, journal)
    lines: list[str] = []
    try:
        view = CommandView(journal)
    except ValueError:
        view = None
    if view is not None:
        lines += [
            f"#0 {in_words(journal.events[0])}",
            f"  judged by: {', '.join(view.start.judged) or 'exit and hang only'}",
        ]
        for launch in view.launches:
            lines += ["", f"Launch {launch.number} (#{launch.start.index})"]
            lines += [
                f"  #{at.index} {in_words(at.event)}"
                for at in launch.events
                if not isinstance(at.event, j.AttemptStarted)
            ]
        for invariant in COMMAND_INVARIANTS:
            found = invariant.judge(view)
            if isinstance(found, NotJudged):
                lines += ["", f"{invariant.name} was not judged: {found.reason}"]
    lines += ["", f"Verdict: {verdict.outcome.upper()}" + (f": {verdict.reason}" if verdict.reason else "")]
    for violation in filter(None, (verdict.primary, *verdict.others)):
        lines.append(f"  {violation.invariant}: {violation.sentence}")
    return "\n".join([*lines, ""])
