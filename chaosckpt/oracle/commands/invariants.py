"""What is asked of a command: each property under the same name, and in the same sense, as for a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from chaosckpt.model import journal as j
from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.commands.view import CommandView, Launch
from chaosckpt.oracle.failures import names_its_subject
from chaosckpt.oracle.guilt import guilty
from chaosckpt.oracle.invariant import NotJudged

Judge = Callable[[CommandView], "list[Violation] | NotJudged"]


@dataclass(frozen=True)
class CommandInvariant:
    """One property of a command's trial."""

    name: str
    holds: str
    judge: Judge


def _violation(
    view: CommandView,
    launch: Launch,
    name: str,
    sentence: str,
    slug: str,
    evidence: tuple[int, ...],
    *,
    expected: str = "",
    seen: str = "",
    step: int | None = None,
) -> Violation:
    shown = max(evidence)
    fault = guilty(view.journal.events, shown, launch.number)
    path = None if fault is None or fault.operation is None else fault.operation.address.path
    if fault is not None:
        where = f" at {fault.operation.address}" if fault.operation is not None else ""
        label = f" ({fault.label})" if fault.label else ""
        sentence += f" The fault most likely behind it: {fault.kind}{where}{label}, in attempt {fault.attempt}."
    return Violation(
        invariant=name,
        sentence=sentence,
        attempt=launch.number,
        rank=0,
        step=step,
        path=path,
        expected=expected,
        seen=seen,
        error_type=slug,
        evidence=evidence,
    )


def _recoveries(view: CommandView) -> list[Launch]:
    """Launches whose recovery can be judged: not the first, and none in whose recovery a fault struck."""
    return [launch for launch in view.launches if launch.before is not None and not launch.struck_in_recovery]


def _last_line(launch: Launch) -> str:
    tail = launch.exit.event.stderr_tail.strip() if launch.exit is not None else ""
    return tail.splitlines()[-1][:200] if tail else "nothing"


def _failed(launch: Launch) -> bool:
    """Whether the command ended by itself, with an error, and no fault of this launch explains it."""
    return launch.outcome == "failed" and not launch.disturbed


def _status(launch: Launch) -> str:
    found = launch.exit.event if launch.exit is not None else None
    if found is None:
        return "without a status"
    return f"by signal {found.signal}" if found.signal is not None else f"with status {found.exit_code}"


def _complete_only(view: CommandView) -> list[Violation] | NotJudged:
    if not (view.judges("resumed") and view.judges("checkpoints")):
        return NotJudged("needs --checkpoints and --resumed")
    found: list[Violation] = []
    subjects = 0
    for launch in _recoveries(view):
        for at in launch.resumed:
            subjects += 1
            if at.event.step in view.partial_before(launch):
                assert launch.before is not None
                wrong = launch.before.event.differing.get(at.event.step or 0, "")
                sentence = (
                    f"In attempt {launch.number} the command resumed from step {at.event.step}, whose checkpoint was not complete: "
                    f"{wrong} is not as the golden run left it."
                )
                found.append(
                    _violation(
                        view,
                        launch,
                        "complete-only",
                        sentence,
                        "incomplete-checkpoint",
                        (launch.before.index, at.index),
                        expected="a complete checkpoint",
                        seen=f"step {at.event.step}",
                        step=at.event.step,
                    )
                )
    return found if subjects else NotJudged("no launch said that it resumed")


def _required(view: CommandView, launch: Launch) -> tuple[int, str, tuple[int, ...]] | None:
    """(step, why, evidence) of what this launch has to find: the newest complete or acknowledged checkpoint.

    The save in which the last launch was struck is not asked for, whatever lies there: a command may keep a pointer elsewhere.
    """
    assert launch.before is not None
    whole = max(set(view.whole_before(launch)) - view.cut_short_before(launch), default=None)
    said = view.acknowledged(launch) if view.judges("saved") else None
    if said is not None and said.event.step is not None and (whole is None or said.event.step > whole):
        return said.event.step, "which it had said was saved", (said.index,)
    if whole is None:
        return None
    return whole, "which lay there complete", (launch.before.index,)


def _newest_complete(view: CommandView) -> list[Violation] | NotJudged:
    if not view.judges("checkpoints"):
        return NotJudged("needs --checkpoints")
    found: list[Violation] = []
    subjects = 0
    for launch in _recoveries(view):
        required = _required(view, launch)
        if required is None or launch.killed:
            continue
        subjects += 1
        found += _shortfall(view, launch, *required)
    return found if subjects else NotJudged("no launch had a checkpoint that it was required to find")


def _shortfall(
    view: CommandView, launch: Launch, step: int, why: str, evidence: tuple[int, ...]
) -> Iterator[Violation]:
    name, where = "newest-complete", f"In attempt {launch.number} the command"
    expected = f"step {step}, or a newer complete one"
    older = next((at for at in launch.resumed if at.event.step is not None and at.event.step < step), None)
    if older is not None:
        sentence = f"{where} resumed from step {older.event.step}, which is older than step {step}, {why}."
        yield _violation(
            view,
            launch,
            name,
            sentence,
            "older-checkpoint",
            (*evidence, older.index),
            expected=expected,
            seen=f"step {older.event.step}",
            step=step,
        )
    elif _failed(launch) and not launch.resumed and launch.exit is not None:
        sentence = f"{where} ended {_status(launch)} ({_last_line(launch)}), in spite of step {step}, {why}."
        yield _violation(
            view,
            launch,
            name,
            sentence,
            "failed-to-resume",
            (*evidence, launch.exit.index),
            expected=expected,
            seen=_last_line(launch),
            step=step,
        )
    elif launch.outcome == "finished" and not launch.resumed and view.judges("resumes") and launch.end is not None:
        sentence = f"{where} began anew, in spite of step {step}, {why}."
        yield _violation(
            view,
            launch,
            name,
            sentence,
            "nothing-chosen",
            (*evidence, launch.end.index),
            expected=expected,
            seen="a fresh start",
            step=step,
        )


def _never_bare(view: CommandView) -> list[Violation] | NotJudged:
    if not view.judges("checkpoints"):
        return NotJudged("needs --checkpoints")
    found: list[Violation] = []
    subjects = 0
    for launch in view.launches:
        once = view.once_whole(launch)
        if once is None or launch.after is None:
            continue
        subjects += 1
        if not launch.after.event.complete and view.whole_before(launch):
            sentence = (
                f"After attempt {launch.number} no complete checkpoint was left, though step {once} had been one."
            )
            found.append(
                _violation(
                    view,
                    launch,
                    "never-bare",
                    sentence,
                    "nothing-left",
                    (launch.after.index,),
                    expected=f"step {once} or a newer one",
                    seen="no complete checkpoint",
                    step=once,
                )
            )
    # A first launch that saved twice can lay bare what it had itself saved; what it said tells.
    for launch in view.launches:
        said = [at for at in launch.saved if at.event.step is not None] if view.judges("saved") else []
        if said and launch.after is not None:
            subjects += 1
            if not launch.after.event.complete and not view.whole_before(launch):
                last = said[-1]
                sentence = (
                    f"After attempt {launch.number} no complete checkpoint was left, though the command had said that it "
                    f"saved step {last.event.step}."
                )
                found.append(
                    _violation(
                        view,
                        launch,
                        "never-bare",
                        sentence,
                        "nothing-left",
                        (last.index, launch.after.index),
                        expected=f"step {last.event.step}",
                        seen="no complete checkpoint",
                        step=last.event.step,
                    )
                )
    return found if subjects else NotJudged("no complete checkpoint was there before")


def _result_equal(view: CommandView) -> list[Violation] | NotJudged:
    if not view.judges("result"):
        return NotJudged("needs --result or --result-cmd, and golden runs that agree on it")
    compared = [at for launch in view.launches for at in launch.all(j.ResultCompared)]
    if not compared:
        return NotJudged("the closing attempt did not finish")
    at = compared[-1]
    if at.event.equal:
        return []
    closing = view.closing
    assert closing is not None
    resumed = closing.resumed[-1].event.step if closing.resumed else None
    how = f"resumed from step {resumed}" if resumed is not None else "launched again"
    sentence = f"The command, {how}, ended with another result than the uninterrupted run."
    return [
        _violation(
            view,
            closing,
            "result-equal",
            sentence,
            "other-result",
            (at.index,),
            expected=at.event.expected,
            seen=at.event.seen,
        )
    ]


def _clear_failure(view: CommandView) -> list[Violation] | NotJudged:
    found: list[Violation] = []
    subjects = 0
    for launch in _recoveries(view):
        if launch.killed or launch.disturbed:
            continue
        if launch.outcome == "hung" and launch.end is not None:
            subjects += 1
            if launch.end.event.confirmed and not launch.resumed:
                sentence = f"In attempt {launch.number} the command hung before it had resumed."
                found.append(
                    _violation(
                        view,
                        launch,
                        "clear-failure",
                        sentence,
                        "hang",
                        (launch.end.index,),
                        expected="an error in time",
                        seen="a hang",
                    )
                )
        elif (
            launch.outcome == "failed"
            and not launch.resumed
            and _required_or_none(view, launch) is None
            and launch.exit is not None
        ):
            subjects += 1
            tail = launch.exit.event.stderr_tail
            if not names_its_subject(tail):
                sentence = (
                    f"In attempt {launch.number} the command ended {_status(launch)} with nothing to resume from, and named no "
                    f"checkpoint: {_last_line(launch)}."
                )
                found.append(
                    _violation(
                        view,
                        launch,
                        "clear-failure",
                        sentence,
                        "unclear-error",
                        (launch.exit.index,),
                        expected="an error that names the checkpoint",
                        seen=_last_line(launch),
                    )
                )
    return found if subjects else NotJudged("no launch failed to resume by itself")


def _required_or_none(view: CommandView, launch: Launch) -> tuple[int, str, tuple[int, ...]] | None:
    return _required(view, launch) if view.judges("checkpoints") else None


def _progress(view: CommandView) -> list[Violation] | NotJudged:
    closing = view.closing
    if closing is None or closing.end is None:
        return NotJudged("the trial had no closing attempt that ended")
    if closing.outcome == "finished":
        return []
    if closing.outcome == "hung" and not closing.end.event.confirmed:
        return NotJudged("the closing attempt hung, which was not confirmed")
    index = closing.exit.index if closing.exit is not None else closing.end.index
    how = "hung" if closing.outcome == "hung" else f"ended {_status(closing)} ({_last_line(closing)})"
    sentence = f"The closing attempt {closing.number}, into which no fault was injected, did not come to its end: the command {how}."
    return [
        _violation(
            view,
            closing,
            "progress",
            sentence,
            "hang" if closing.outcome == "hung" else "failed",
            (index,),
            expected="exit status 0",
            seen=how,
        )
    ]


COMMAND_INVARIANTS = (
    CommandInvariant(
        "complete-only", "no launch resumes from a checkpoint whose files are not complete", _complete_only
    ),
    CommandInvariant(
        "newest-complete", "a launch resumes from the newest complete checkpoint, or a newer one", _newest_complete
    ),
    CommandInvariant("never-bare", "once there was a complete checkpoint, there always is one", _never_bare),
    CommandInvariant("result-equal", "the job ends with the result of the uninterrupted run", _result_equal),
    CommandInvariant(
        "clear-failure",
        "a command that can't resume says so, in time and non-zero, naming the checkpoint",
        _clear_failure,
    ),
    CommandInvariant("progress", "after the faults have stopped, the command comes to its end", _progress),
)
"""In the order of precedence, as for targets."""
