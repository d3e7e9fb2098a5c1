"""What an invariant of a command is, and how what breaks it is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaosckpt.model.verdict import Violation
from chaosckpt.oracle.commands.launch import Launch
from chaosckpt.oracle.commands.storage import INEXACT
from chaosckpt.oracle.commands.view import CommandView
from chaosckpt.oracle.guilt import guilty
from chaosckpt.oracle.invariant import NotJudged

TELLS_NO_STEP = (
    "without any fault the command did not say which step it resumed from: give the line in which it does with --resumed, and what it "
    "needs to resume with --resume-args"
)
Judge = Callable[[CommandView], "list[Violation] | NotJudged"]


@dataclass(frozen=True)
class CommandInvariant:
    """One property of a command's trial. `judge` is pure; it returns what breaks the property, nothing when it holds."""

    name: str
    holds: str
    judge: Judge


def violation(
    view: CommandView,
    launch: Launch,
    invariant: str,
    sentence: str,
    slug: str,
    evidence: tuple[int, ...],
    *,
    expected: str,
    seen: str,
    step: int | None = None,
) -> Violation:
    """What breaks an invariant, with the fault that is most likely behind it. `slug` tells root causes apart."""
    fault = guilty(view.journal.events, max(evidence), launch.number) if slug != INEXACT else None
    if fault is not None:
        where = f" at {fault.operation.address}" if fault.operation is not None else ""
        label = f" ({fault.label})" if fault.label else ""
        sentence += f" The fault most likely behind it: {fault.kind}{where}{label}, in attempt {fault.attempt}."
    return Violation(
        invariant=invariant,
        sentence=sentence,
        attempt=launch.number,
        rank=0,
        step=step,
        path=None if fault is None or fault.operation is None else fault.operation.address.path,
        expected=expected,
        seen=seen,
        error_type=slug,
        evidence=evidence,
    )
