"""The verdict on a command's trial."""

from __future__ import annotations

from collections.abc import Iterator

from chaosckpt.model import journal as j
from chaosckpt.model.journal import Journal
from chaosckpt.model.scenario import Scenario
from chaosckpt.model.verdict import Verdict, Violation
from chaosckpt.oracle.commands import failure, storage
from chaosckpt.oracle.commands.launch import Launch
from chaosckpt.oracle.commands.owed import owed
from chaosckpt.oracle.commands.precedence import COMMAND_INVARIANTS, ranked
from chaosckpt.oracle.commands.view import CommandView
from chaosckpt.oracle.invariant import NotJudged
from chaosckpt.oracle.judgement import doubtful_faults, doubtful_trace
from chaosckpt.oracle.view import TrialView
from chaosckpt.oracle.words import in_words


def check_command(scenario: Scenario, journal: Journal) -> Verdict:
    """Judge a trial of a command. Pure, and never raises for a journal cut off anywhere."""
    for event in journal.events:
        if isinstance(event, j.HarnessTrouble):
            return Verdict(outcome="inconclusive", reason=f"the harness itself failed: {event.what}")
    try:
        view, trial = CommandView(scenario, journal), TrialView(scenario, journal)
    except ValueError as error:
        return Verdict(outcome="inconclusive", reason=f"{error}; it was cut off or is another file")
    if not isinstance(journal.events[-1], j.TrialEnded):
        return Verdict(outcome="inconclusive", reason="the journal was cut off: it doesn't tell the end of the trial")
    violations, judged, unjudged = _judge(view)
    if violations:
        first, *others = ranked(violations)
        return Verdict(outcome="violation", primary=first, others=tuple(others), judged=judged, unjudged=unjudged)
    doubts = list(_doubts(view, trial))
    if doubts:
        return Verdict(outcome="inconclusive", reason="; ".join(doubts), judged=judged, unjudged=unjudged)
    return Verdict(outcome="pass", judged=judged, unjudged=unjudged)


def _judge(view: CommandView) -> tuple[list[Violation], tuple[str, ...], tuple[str, ...]]:
    """(violations, names of what was judged, what was not and why)."""
    violations: list[Violation] = []
    judged: list[str] = []
    unjudged: list[str] = []
    for invariant in COMMAND_INVARIANTS:
        found = invariant.judge(view)
        if isinstance(found, NotJudged):
            unjudged.append(f"{invariant.name} was not judged: {found.reason}")
        else:
            judged.append(invariant.name)
            violations += found
    return violations, tuple(judged), tuple(unjudged)


def _doubts(view: CommandView, trial: TrialView) -> Iterator[str]:
    """Why a trial without violation is not a pass, in words."""
    yield from doubtful_faults(trial)
    for launch in view.launches:
        excuse = failure.excuse(view, launch)
        if launch.end is None:
            yield f"the journal doesn't tell how attempt {launch.number} ended"
        elif launch.outcome == "hung" and not launch.killed and not launch.end.event.confirmed:
            yield f"attempt {launch.number} hung, which was not confirmed by running it alone at three times the deadline"
        elif excuse is not None:
            yield f"attempt {launch.number} failed, but {excuse}"
    if view.closing is None:
        yield "there was no closing attempt"
    misfit = storage.misfit(view)
    if misfit is not None:
        yield str(misfit)
    yield from doubtful_trace(trial)


def explain_command(scenario: Scenario, journal: Journal) -> str:
    """Plain text: what each launch found, owed, did and said, and the verdict. `#12` is the journal's event number 12."""
    verdict = check_command(scenario, journal)
    lines: list[str] = []
    try:
        view = CommandView(scenario, journal)
    except ValueError:
        view = None
    if view is not None:
        lines += [
            f"#0 {in_words(journal.events[0])}",
            f"  judged by: {', '.join(view.start.judged) or 'exit and hang only'}",
        ]
        for launch in view.launches:
            lines += ["", *_launch(view, launch)]
        misfit = storage.misfit(view)
        lines += ["", f"In doubt: {misfit}"] if misfit is not None else []
    for reason in verdict.unjudged:
        lines += ["", reason]
    lines += ["", f"Verdict: {verdict.outcome.upper()}" + (f": {verdict.reason}" if verdict.reason else "")]
    for violation in filter(None, (verdict.primary, *verdict.others)):
        lines.append(f"  {violation.invariant}: {violation.sentence}")
    return "\n".join([*lines, ""])


def _launch(view: CommandView, launch: Launch) -> Iterator[str]:
    yield f"Launch {launch.number} (#{launch.start.index})"
    if launch.before is not None:
        lying = storage.before(view, launch)
        for word, steps in (("complete", lying.whole), ("torn", lying.torn), ("not sure", lying.unsure)):
            if steps:
                yield f"  found {word}: {', '.join(f'step {step}' for step in sorted(steps))}"
        required = owed(view, launch)
        indices = ", ".join(f"#{index}" for index in required.evidence) if required is not None else ""
        yield (
            f"  required: step {required.step}, {required.why} ({indices})"
            if required is not None
            else "  required: nothing"
        )
    for at in launch.events:
        if not isinstance(at.event, j.AttemptStarted):
            yield f"  #{at.index} {in_words(at.event)}"
